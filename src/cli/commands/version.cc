// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/version.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>

#include "kernels/kernel_table.h"

namespace outrider {

std::string version_text() {
  constexpr std::string_view kCommit = OUTRIDER_COMMIT;
  return fmt::format("outrider {}\n{}kernels of this machine: {}", OUTRIDER_VERSION,
                     kCommit.empty() ? "" : fmt::format("commit {}\n", kCommit),
                     fmt::join(available_kernels(), ", "));
}

}  // namespace outrider
