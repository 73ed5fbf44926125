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

// The whole road.
Result<std::unique_ptr<Engine>> open_engine(Names names);

}  // namespace outrider
