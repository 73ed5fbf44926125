// SPDX-License-Identifier: Apache-2.0
// The tests of chaos share these functions.
#pragma once

#include <chrono>
#include <string>

namespace outrider {

inline const std::string kSmall = OUTRIDER_SOURCE_DIR "/models/outrider-small";

// How often a test repeats its accident: OUTRIDER_CHAOS_RUNS, or `usual`.
int chaos_runs(int usual);

double seconds_since(std::chrono::steady_clock::time_point start);

// The body of a greedy completion.
std::string completion_of(const std::string& prompt, int tokens, bool streams = false);

}  // namespace outrider
