// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "formats/hf/safetensors.h"
#include "formats/json_file.h"
#include "formats/model_file.h"
#include "outrider/result.h"

namespace outrider {

// Networks that draft from the target's inner state, by the layout of their published checkpoints.
enum class HeadKind : uint8_t { kEagle, kEagle3, kMedusa, kMtp, kMoa, kDFlash };

// As decoding_type spells it: "Eagle3".
std::string_view head_kind_name(HeadKind kind);
// The reverse; nullopt: no such kind.
std::optional<HeadKind> head_kind_named(std::string_view name);

// A learned drafter's files: a directory with config.json and safetensors. Its kind shows in the names of its
// tensors; configs are too unlike.
struct HeadFile {
  HeadKind kind = HeadKind::kEagle;
  JsonFile config;
  ModelFile file;  // path and tensors that can hold weights, for a WeightLoader; no config, no tokenizer
  std::map<std::string, SafetensorsEntry, std::less<>> tensors;  // all, integers included

  Error fail(const std::string& what) const { return input_error(file.path.string() + ": " + what); }
};

// Errors: no such directory, those of its files, tensors that are no drafter's.
Result<HeadFile> open_head(const std::filesystem::path& directory);

// The same for a drafter of that kind. Errors: no directory, one that holds another kind, another target's.
Result<HeadFile> open_head_for(HeadKind kind, const std::filesystem::path& directory,
                               std::string_view fingerprint);

// The same where it may as well be a draft model, or nothing at all: then there is no head. Error: a head
// whose files cannot be read.
Result<std::optional<HeadFile>> find_head(const std::filesystem::path& path);

struct HeadTensor {
  std::string name;
  Shape shape;
  bool is_optional = false;
};
// Error: the first tensor that is missing, has another shape, or is not listed; those that `is_ignored` may
// be there without being listed.
Status check_head_tensors(const HeadFile& head, std::span<const HeadTensor> expected,
                          const std::function<bool(std::string_view)>& is_ignored = {});

// Says which target a head was trained for: a hash of all norms' weights as f32, which stay as they are when
// matrices are quantised. Heads carry it in config.json as "outrider_target".
std::string target_fingerprint(const ModelFile& target);

// Error: the head names another target. Heads that name none pass.
Status check_target(const HeadFile& head, std::string_view fingerprint);

}  // namespace outrider
