// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "engine/engine_parts.h"
#include "open/files.h"

namespace outrider {

// The stages of opening, in their order.
enum class LoadStage : uint8_t { kFiles, kWeights, kDrafter, kCosts };
inline constexpr std::array<std::string_view, 4> kLoadStages = {"files", "weights", "drafter", "costs"};
using LoadSink = std::function<void(LoadStage)>;

// The parts of an engine, the last value of the road (names.h). The sink, if there is one, is called as each
// stage begins. Errors: anything about the options, the model or the drafter that does not fit; out of
// memory. Where Auto has found the drafter, one that cannot be opened or leaves too little memory is no
// error: the next one takes its place in `files`, or none.
Result<std::unique_ptr<EngineParts>> open_parts(OpenedFiles& files, const LoadSink& sink = {});
Result<std::unique_ptr<EngineParts>> open_parts(Names names, const LoadSink& sink = {});

// The memory of an engine under its limit, told without packing or reading weights of layers.
struct PlannedMemory {
  int64_t context = 0;         // tokens of the longest sequence
  int64_t rest = 0;            // bytes of all but the weights of layers, a little more than usual
  LayerStreaming layers = {};  // what is kept of them under the limit, or the least where that is too little

  int64_t needed() const { return rest + layers.kept_bytes; }  // bytes; open_parts() runs with them
};

// Plans open_parts() under the limit of the options, which must have one. Errors: as there, but not that the
// limit is too low.
Result<PlannedMemory> plan_parts(const OpenedFiles& files);

// The whole road.
Result<std::unique_ptr<Engine>> open_engine(Names names);

}  // namespace outrider
