// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace outrider {

// The whole program: parses the arguments, runs one command, and reports an error in one line on standard
// error. Returns the exit code: 0, 2 for wrong usage, 1 for a failed run. Never throws.
int run_command_line(int argc, const char* const* argv);

}  // namespace outrider
