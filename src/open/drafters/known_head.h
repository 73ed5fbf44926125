// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace outrider {

// A drafter that somebody has published.
struct KnownHead {
  std::string_view target;      // "ORG/REPO" of the model that it was trained for
  std::string_view repository;  // "ORG/REPO"
  std::string_view method;      // its layout, as --speculative names the method
};

}  // namespace outrider
