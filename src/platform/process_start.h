// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>

namespace outrider {

// Seconds from the start of the machine to the start of the process in the folder /proc/PID; nullopt: its
// `stat` cannot be read.
std::optional<double> process_start(const std::filesystem::path& process);

}  // namespace outrider
