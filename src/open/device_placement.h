// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "drafters/draft_files.h"
#include "formats/model_file.h"
#include "models/backend/placement.h"
#include "outrider/engine.h"

namespace outrider {

// The bytes that a target needs in the memory of a device.
struct DeviceNeeds {
  int64_t weights = 0;  // of products and tables
  int64_t cache = 0;    // keys and values of the longest sequence, and the states of a full batch
  int64_t scratch = 0;  // rows of a pass, about
  int64_t context = 0;  // tokens

  int64_t bytes() const { return weights + cache + scratch; }
};
// Without what the placement keeps on the processor.
DeviceNeeds device_needs(const EngineOptions& options, const ModelFile& target,
                         const Placement& placement = {});

// The placement that the options ask for; what they leave open is on the device. As in llama.cpp the output
// head counts as a layer, and the last layers are on the device. More layers than there are mean all.
Placement asked_placement(const EngineOptions& options, const ModelConfig& config);

// A placement within `free_bytes`. Parts that the options leave open stay on the processor as far as they
// must: experts first, which few rows read, and then layers. nullopt: no layer fits.
std::optional<Placement> planned_placement(const EngineOptions& options, const ModelFile& target,
                                           int64_t free_bytes);

// "the last 20 of 33 layers", "all 49 layers without the experts of the first 12": what is on the device.
std::string placement_text(const Placement& placement, const ModelConfig& config);

// Puts the placement into the options as numbers, for which asked_placement() returns it. Where memory
// decides, one line says so. free_bytes: of the device; nullopt: it has no end. Error: the options keep a
// part on the processor, and ranks share the target.
Status take_placement(EngineOptions& options, const ModelFile& target, const DraftFiles& drafts,
                      std::optional<int64_t> free_bytes);

}  // namespace outrider
