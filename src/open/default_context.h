// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "drafters/draft_files.h"
#include "formats/model_file.h"
#include "outrider/engine.h"

namespace outrider {

// The context that is asked of no memory: where layers are read from files, on devices, and at the least.
inline constexpr int64_t kUsualContext = 8192;

// Tokens of the longest sequence that the model was made for, with the shorter positions of LongRoPE.
int64_t trained_context(const ModelConfig& config);

// The context where none is asked for: the trained one, or as much of it as memory holds. The cache of one
// sequence and the drafter's caches get a third of `free_bytes`, less the weights. It is kUsualContext at the
// least, and at the most where `free_bytes` is nullopt.
int64_t default_context(const EngineOptions& options, const ModelFile& target, const DraftFiles& drafts,
                        std::optional<int64_t> free_bytes);

// The bytes that drafters of these files take: their weights as stored, and their caches of that length,
// which they have for every sequence of a batch. Ranks that draft have draft models elsewhere.
int64_t draft_bytes(const EngineOptions& options, const DraftFiles& drafts, int64_t context);

// "context of 40,960 tokens, which is what memory holds of 131,072": why it is not the trained one.
std::string context_note(int64_t context, const ModelConfig& config);

}  // namespace outrider
