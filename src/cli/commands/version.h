// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace outrider {

// "outrider 0.1.0", the commit that it was built from, the kernels that this machine can run, and its GPU or
// why there is none, in lines.
std::string version_text();

}  // namespace outrider
