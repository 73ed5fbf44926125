// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/json_file.h"
#include "formats/model_file.h"
#include "formats/stored_tensor.h"
#include "outrider/result.h"
#include "outrider/speculative_options.h"
#include "outrider/token.h"

namespace outrider {

// The files of a head, which is a network that drafts from the target's inner state: a directory with
// config.json and its weights. The names of the tensors say which method the head is for (config/methods.h).
struct HeadFile {
  Method method = {};
  JsonFile config;
  ModelFile file;  // path and tensors that can hold weights, for a WeightLoader; no config, no tokenizer
  StoredTensors tensors;  // all, integers included
  // The ids of the rows of the target's output head that take_output_rows() added, rising; or empty.
  std::vector<TokenId> output_rows = {};

  Error fail(const std::string& what) const { return input_error(file.path.string() + ": " + what); }
};

// Opens a directory, or a GGUF file (gguf_head.h). Errors: it is not there, errors of its files, tensors that
// are no drafter's.
Result<HeadFile> open_head(const std::filesystem::path& directory);

// The head beside or among the tensors of a model; nullopt: there is none. Errors: as open_head().
Result<std::optional<HeadFile>> find_module(const ModelFile& model);

// A head, or else the files of what may be a draft model, for open_model().
struct HeadOrFiles {
  std::optional<HeadFile> head;
  std::shared_ptr<const StoredFiles> files;  // null: they were not opened, or cannot be
};
// Opens a path that may hold a head, a draft model or nothing at all. Error: a head with files that cannot be
// read.
Result<HeadOrFiles> open_head_or_files(const std::filesystem::path& path);

struct HeadTensor {
  std::string name;
  Shape shape;
  bool is_optional = false;
};
// Error: the first tensor that is missing, has another shape, or is not listed; tensors that are `is_ignored`
// need not be listed.
Status check_head_tensors(const HeadFile& head, std::span<const HeadTensor> expected,
                          const std::function<bool(std::string_view)>& is_ignored = {});

// All numbers of a tensor that is there, whatever its dimensions. Error: it holds no plain numbers.
Result<std::vector<float>> read_numbers(const HeadFile& head, const std::string& name);

// Says which target a head was trained for: a hash of all norms' weights as f32, which stay as they are when
// matrices are quantised. Heads carry it in config.json as "outrider_target".
std::string target_fingerprint(const ModelFile& target);

// Says whether two machines have the same head: a hash of the names, shapes and first numbers of its tensors.
std::string head_fingerprint(const HeadFile& head);

// Errors: the head is another method's; it names another target. Heads that name none pass.
Status check_head(const HeadFile& head, Method method, std::string_view fingerprint);

}  // namespace outrider
