// SPDX-License-Identifier: Apache-2.0
#include "formats/hf_directory.h"

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/quote.h"
#include "device/mapped_file.h"
#include "formats/hf_chat_template.h"
#include "formats/hf_config.h"
#include "formats/json_document.h"
#include "formats/model_tensors.h"
#include "formats/safetensors.h"
#include "text/tokenizer.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxShards = 1024;

bool file_exists(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// File names of an index must stay inside the directory.
bool is_plain_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\\\0", 3)) == name.npos;
}

using ShardOfTensor = std::map<std::string, std::string, std::less<>>;

Result<ShardOfTensor> read_index(const fs::path& path) {
  OUTRIDER_TRY(const JsonDocument document, JsonDocument::read(path));
  const JsonObject& root = document.root();
  OUTRIDER_TRY(const auto weight_map, root.object("weight_map"));
  if (!weight_map) return root.fail("'weight_map' is missing");
  ShardOfTensor shard_of;
  for (const auto& [tensor, value] : weight_map->fields()) {
    std::string_view shard;
    if (value.get(shard) != simdjson::SUCCESS || !is_plain_name(shard)) {
      return root.fail("the shard of tensor " + quote(tensor) +
                       " must be the name of a file in the same directory");
    }
    shard_of.emplace(tensor, shard);
  }
  return shard_of;
}

class SafetensorsDirectory {
 public:
  SafetensorsDirectory(fs::path directory, ModelStorage* storage)
      : directory_(std::move(directory)), storage_(storage) {}

  Status open() {
    const fs::path index = directory_ / "model.safetensors.index.json";
    if (file_exists(directory_ / "model.safetensors")) return open_shard("model.safetensors");
    if (file_exists(index)) return open_shards(index);
    const bool has_pickle = file_exists(directory_ / "pytorch_model.bin") ||
                            file_exists(directory_ / "pytorch_model.bin.index.json");
    return fail(has_pickle ? "pytorch_model.bin is not supported; save the model with safe_serialization=True"
                           : "neither model.safetensors nor model.safetensors.index.json is there");
  }

  Result<TensorView> find(const std::string& name) const {
    const auto it = tensors_.find(name);
    if (it == tensors_.end()) return fail("tensor " + name + " is missing");
    const SafetensorsEntry& entry = it->second;
    if (!entry.dtype) {
      return fail("tensor " + name + " has dtype " + entry.dtype_name +
                  ", which is not supported; F32, F16 and BF16 are");
    }
    return TensorView{*entry.dtype, entry.shape, entry.data.data()};
  }

  const std::map<std::string, std::string, std::less<>>& metadata() const { return metadata_; }

 private:
  Error fail(const std::string& what) const { return input_error(directory_.string() + ": " + what); }

  Status open_shard(const std::string& file_name) {
    const fs::path path = directory_ / file_name;
    OUTRIDER_TRY(MappedFile mapped, MappedFile::open(path));
    OUTRIDER_TRY(SafetensorsFile file, parse_safetensors(mapped.bytes(), path.string()));
    storage_->files.push_back(std::move(mapped));
    tensors_.merge(file.tensors);
    metadata_.merge(file.metadata);
    if (file.tensors.empty()) return {};
    return fail("tensor " + quote(file.tensors.begin()->first) + " is in two shards");
  }

  Status open_shards(const fs::path& index) {
    OUTRIDER_TRY(const ShardOfTensor shard_of, read_index(index));
    std::set<std::string_view> shards;
    for (const auto& [tensor, shard] : shard_of) shards.insert(shard);
    if (shards.size() > kMaxShards) return fail("more than 1024 shards in the index");
    for (const std::string_view shard : shards) {
      const std::string name(shard);
      if (!file_exists(directory_ / name)) return fail("shard " + quote(name) + " of the index is missing");
      OUTRIDER_RETURN_IF_ERROR(open_shard(name));
    }
    return {};
  }

  fs::path directory_;
  ModelStorage* storage_;
  std::map<std::string, SafetensorsEntry, std::less<>> tensors_;
  std::map<std::string, std::string, std::less<>> metadata_;
};

Status check_tokenizer_exists(const fs::path& directory) {
  if (file_exists(directory / "tokenizer.json")) return {};
  if (file_exists(directory / "tokenizer.model")) {
    return input_error(
        directory.string() +
        ": tokenizer.model (SentencePiece) is not supported; save the tokenizer as tokenizer.json");
  }
  return input_error(directory.string() + ": tokenizer.json is missing");
}

// Scalars at the top of config.json, and what the safetensors files say about themselves.
Status describe(const fs::path& directory, const SafetensorsDirectory& tensors, ModelFile* model) {
  OUTRIDER_TRY(const JsonDocument document, JsonDocument::read(directory / "config.json"));
  for (const auto& [key, value] : document.root().fields()) {
    if (value.is_array() || value.is_object() || value.is_null()) continue;
    std::string_view text;
    model->metadata.emplace(
        printable(key),
        printable(value.get(text) == simdjson::SUCCESS ? text : std::string_view(simdjson::minify(value))));
  }
  for (const auto& [key, value] : tensors.metadata())
    model->metadata.emplace(printable(key), printable(value));
  return {};
}

}  // namespace

Result<ModelFile> open_hf_directory(const fs::path& directory) {
  ModelFile model;
  model.path = directory;
  model.format = "safetensors";
  if (!file_exists(directory / "config.json")) {
    return input_error(directory.string() +
                       ": config.json is missing; expected a Hugging Face model directory");
  }
  OUTRIDER_TRY(model.config, read_hf_config(directory));
  OUTRIDER_RETURN_IF_ERROR(check_tokenizer_exists(directory));
  OUTRIDER_TRY(model.tokenizer, read_tokenizer_json(directory));
  OUTRIDER_TRY(model.chat_template, read_chat_template(directory));
  auto storage = std::make_shared<ModelStorage>();
  SafetensorsDirectory tensors(directory, storage.get());
  OUTRIDER_RETURN_IF_ERROR(tensors.open());
  OUTRIDER_RETURN_IF_ERROR(
      attach_tensors([&](const std::string& name) { return tensors.find(name); }, storage.get(), &model));
  OUTRIDER_RETURN_IF_ERROR(describe(directory, tensors, &model));
  model.storage = std::move(storage);
  return model;
}

}  // namespace outrider
