// SPDX-License-Identifier: Apache-2.0
#include "formats/hf/safetensors_directory.h"

#include <set>
#include <string_view>
#include <utility>

#include "base/quote.h"
#include "formats/json_file.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxShards = 1024;

bool file_exists(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// True for a file name that stays inside the directory, as those of an index must.
bool is_plain_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\\\0", 3)) == name.npos;
}

using ShardOfTensor = std::map<std::string, std::string, std::less<>>;

Result<ShardOfTensor> read_index(const fs::path& path) {
  OUTRIDER_TRY(const JsonFile document, JsonFile::read(path));
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

}  // namespace

Result<SafetensorsDirectory> SafetensorsDirectory::open(const fs::path& directory,
                                                        std::vector<MappedFile>& files,
                                                        const std::string& file_name) {
  SafetensorsDirectory found(directory);
  const fs::path index = directory / "model.safetensors.index.json";
  if (file_exists(directory / file_name)) {
    OUTRIDER_RETURN_IF_ERROR(found.open_shard(file_name, files));
    return found;
  }
  if (file_exists(index)) {
    OUTRIDER_RETURN_IF_ERROR(found.open_shards(index, files));
    return found;
  }
  const bool has_pickle =
      file_exists(directory / "pytorch_model.bin") || file_exists(directory / "pytorch_model.bin.index.json");
  return found.fail(has_pickle
                        ? "pytorch_model.bin is not supported; save the model with safe_serialization=True"
                        : "neither model.safetensors nor model.safetensors.index.json is there");
}

Result<TensorView> SafetensorsDirectory::find(const std::string& name) const {
  const auto it = tensors_.find(name);
  if (it == tensors_.end()) return fail("tensor " + name + " is missing");
  const SafetensorsEntry& entry = it->second;
  if (!entry.dtype) {
    return fail("tensor " + name + " has dtype " + entry.dtype_name +
                ", which is not supported; F32, F16 and BF16 are");
  }
  return TensorView{*entry.dtype, entry.shape, entry.data.data()};
}

Status SafetensorsDirectory::open_shard(const std::string& file_name, std::vector<MappedFile>& files) {
  const fs::path path = directory_ / file_name;
  OUTRIDER_TRY(MappedFile mapped, MappedFile::open(path));
  OUTRIDER_TRY(SafetensorsFile file, parse_safetensors(mapped.bytes(), path.string()));
  files.push_back(std::move(mapped));
  tensors_.merge(file.tensors);
  metadata_.merge(file.metadata);
  if (file.tensors.empty()) return {};
  return fail("tensor " + quote(file.tensors.begin()->first) + " is in two shards");
}

Status SafetensorsDirectory::open_shards(const fs::path& index, std::vector<MappedFile>& files) {
  OUTRIDER_TRY(const ShardOfTensor shard_of, read_index(index));
  std::set<std::string_view> shards;
  for (const auto& [tensor, shard] : shard_of) shards.insert(shard);
  if (shards.size() > kMaxShards) return fail("more than 1024 shards in the index");
  for (const std::string_view shard : shards) {
    const std::string name(shard);
    if (!file_exists(directory_ / name)) return fail("shard " + quote(name) + " of the index is missing");
    OUTRIDER_RETURN_IF_ERROR(open_shard(name, files));
  }
  return {};
}

}  // namespace outrider
