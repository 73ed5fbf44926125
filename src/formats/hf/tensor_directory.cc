// SPDX-License-Identifier: Apache-2.0
#include "formats/hf/tensor_directory.h"

#include <set>
#include <string_view>
#include <utility>

#include "base/quote.h"
#include "formats/hf/safetensors.h"
#include "formats/json_file.h"
#include "formats/json_object.h"
#include "formats/torch/torch_file.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxShards = 1024;
constexpr size_t kMaxIndexBytes = 64 << 20;  // an index has a line for every matrix of every expert

bool file_exists(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// True for a file name that stays inside the directory, as the names of an index must.
bool is_plain_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\\\0", 3)) == name.npos;
}

using ShardOfTensor = std::map<std::string, std::string, std::less<>>;

Result<ShardOfTensor> read_index(const fs::path& path) {
  OUTRIDER_TRY(const JsonFile document, JsonFile::read(path, kMaxIndexBytes));
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

Result<TensorDirectory> TensorDirectory::open(const fs::path& directory, std::vector<MappedFile>& files) {
  for (const std::string name : {"model.safetensors", "pytorch_model.bin"}) {
    if (file_exists(directory / name)) return open_file(directory, files, name);
    const fs::path index = directory / (name + ".index.json");
    if (!file_exists(index)) continue;
    TensorDirectory found(directory);
    OUTRIDER_RETURN_IF_ERROR(found.open_shards(index, files));
    return found;
  }
  return TensorDirectory(directory).fail(
      "expected model.safetensors or pytorch_model.bin, or the .index.json of one, found neither");
}

Result<TensorDirectory> TensorDirectory::open_file(const fs::path& directory, std::vector<MappedFile>& files,
                                                   const std::string& file_name) {
  TensorDirectory found(directory);
  OUTRIDER_RETURN_IF_ERROR(found.open_shard(file_name, files));
  return found;
}

Result<TensorView> TensorDirectory::find(const std::string& name) const {
  const auto it = tensors_.find(name);
  if (it == tensors_.end()) return fail("tensor " + name + " is missing");
  const StoredTensor& entry = it->second;
  if (!entry.dtype) {
    return fail("tensor " + name + " has dtype " + entry.dtype_name +
                ", which is not supported; F32, F16 and BF16 are");
  }
  return TensorView{*entry.dtype, entry.shape, entry.data.data()};
}

Status TensorDirectory::open_shard(const std::string& file_name, std::vector<MappedFile>& files) {
  const fs::path path = directory_ / file_name;
  OUTRIDER_TRY(MappedFile mapped, MappedFile::open(path));
  StoredTensors tensors;
  if (path.extension() == ".safetensors") {
    OUTRIDER_TRY(SafetensorsFile file, parse_safetensors(mapped.bytes(), path.string()));
    tensors = std::move(file.tensors);
    metadata_.merge(file.metadata);
    format_ = "safetensors";
  } else {
    OUTRIDER_TRY(tensors, parse_torch_file(mapped.bytes(), path.string()));
    format_ = "pytorch";
  }
  files.push_back(std::move(mapped));
  tensors_.merge(tensors);
  if (tensors.empty()) return {};
  return fail("tensor " + quote(tensors.begin()->first) + " is in two shards");
}

Status TensorDirectory::open_shards(const fs::path& index, std::vector<MappedFile>& files) {
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
