// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hub/remote/hub_reference.h"

namespace outrider {

// Known models that run in so many bytes of memory, the smallest first; the smallest of all in any case.
std::vector<KnownModel> fitting_models(int64_t memory);

// Bytes of memory that all workers read in a second, measured in a moment.
double measure_memory_rate();

// A numbered line for each model, with its size and the tokens per second that plain decoding cannot exceed:
// a token reads all weights once.
std::string model_list_text(std::span<const KnownModel> models, double read_rate);

}  // namespace outrider
