// SPDX-License-Identifier: Apache-2.0
// Groups of options, and ends of ranges that several rows have.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>

namespace outrider::option_groups {

inline constexpr std::string_view kModel = "Model";
inline constexpr std::string_view kInput = "Input";
inline constexpr std::string_view kMeasure = "Measurement";
inline constexpr std::string_view kSampling = "Sampling";
inline constexpr std::string_view kLength = "Length and stopping";
inline constexpr std::string_view kSpeculation = "Speculation";
inline constexpr std::string_view kMachine = "Machine";
inline constexpr std::string_view kServing = "Serving";
inline constexpr std::string_view kOutput = "Output";

inline constexpr double kMaxTokens = 1 << 24;
inline constexpr double kMaxOutput = int64_t{1} << 31;  // clients write the greatest int for "no limit"
inline constexpr double kMaxInt = std::numeric_limits<int32_t>::max();
inline constexpr double kMaxSeed = 9.2e18;  // below 2^63, so that seeds are whole numbers everywhere
inline constexpr double kNoEnd = 9223372036854775808.0;

}  // namespace outrider::option_groups
