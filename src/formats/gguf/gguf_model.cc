// SPDX-License-Identifier: Apache-2.0
#include "formats/gguf/gguf_model.h"

#include <array>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/quote.h"
#include "formats/families.h"
#include "formats/gguf/gguf.h"
#include "formats/gguf/gguf_config.h"
#include "formats/gguf/gguf_metadata.h"
#include "formats/gguf/gguf_tokenizer.h"
#include "formats/interleaved_rows.h"
#include "formats/model_tensors.h"
#include "formats/stored_layout.h"
#include "platform/mapped_file.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kMaxShards = 1024;

// The paths of all shards: "<stem>-00002-of-00005.gguf" is shard 1 of 5. Error: `path` is not named that way.
Result<std::vector<fs::path>> shard_paths(const fs::path& path, int64_t count) {
  const std::string stem = path.stem().string();
  char suffix[32];
  std::snprintf(suffix, sizeof(suffix), "-of-%05lld", static_cast<long long>(count));
  constexpr size_t kNumber = sizeof("-00001") - 1;
  const size_t suffix_size = std::strlen(suffix);
  if (!stem.ends_with(suffix) || stem.size() <= suffix_size + kNumber) {
    return input_error(path.string() + ": one of " + std::to_string(count) +
                       " shards must be named '<name>-00001" + suffix + ".gguf'");
  }
  const std::string base = stem.substr(0, stem.size() - suffix_size - kNumber);
  std::vector<fs::path> paths;
  for (int64_t i = 1; i <= count; ++i) {
    char number[32];
    std::snprintf(number, sizeof(number), "-%05lld", static_cast<long long>(i));
    paths.push_back(path.parent_path() / (base + number + suffix + ".gguf"));
  }
  return paths;
}

struct ShardInfo {
  int64_t index = 0;
  int64_t count = 1;
};

Result<ShardInfo> shard_info(const GgufFile& file, const fs::path& path) {
  const std::string name = path.string();
  const GgufMetadata metadata(file, name);
  OUTRIDER_TRY(const auto count, metadata.integer("split.count"));
  OUTRIDER_TRY(const auto index, metadata.integer("split.no"));
  const ShardInfo info{index.value_or(0), count.value_or(1)};
  if (info.count == 0) return ShardInfo{};
  if (info.count < 1 || info.count > kMaxShards || info.index < 0 || info.index >= info.count) {
    return metadata.fail("split.no " + std::to_string(info.index) + " of split.count " +
                         std::to_string(info.count) + " makes no sense (at most 1024 shards)");
  }
  return info;
}

Result<GgufFile> read_file(const fs::path& path, ModelStorage* storage) {
  OUTRIDER_TRY(MappedFile mapped, MappedFile::open(path));
  OUTRIDER_TRY(GgufFile file, parse_gguf(mapped.bytes(), path.string()));
  storage->files.push_back(std::move(mapped));
  storage->paths.push_back(path);
  return file;
}

void describe(const GgufFile& file, ModelFile* model) {
  for (const auto& [key, value] : file.metadata) model->metadata.emplace(printable(key), value.printable());
}

}  // namespace

bool begins_as_gguf(const fs::path& path) {
  std::error_code code;
  std::array<char, 4> magic = {};
  // A named pipe would wait for a writer.
  return fs::is_regular_file(path, code) &&
         std::ifstream(path, std::ios::binary).read(magic.data(), magic.size()) &&
         std::string_view(magic.data(), magic.size()) == "GGUF";
}

Result<StoredFiles> read_gguf_shards(const fs::path& path) {
  const auto storage = std::make_shared<ModelStorage>();
  OUTRIDER_TRY(GgufFile given, read_file(path, storage.get()));
  OUTRIDER_TRY(const ShardInfo given_info, shard_info(given, path));
  if (given_info.count == 1) return StoredFiles{path, std::move(given), storage};
  OUTRIDER_TRY(const auto paths, shard_paths(path, given_info.count));
  storage->files.clear();
  storage->paths.clear();
  GgufFile merged;
  for (int64_t i = 0; i < given_info.count; ++i) {
    const fs::path& shard_path = paths[static_cast<size_t>(i)];
    OUTRIDER_TRY(GgufFile shard, read_file(shard_path, storage.get()));
    OUTRIDER_TRY(const ShardInfo info, shard_info(shard, shard_path));
    if (info.index != i || info.count != given_info.count) {
      return input_error(shard_path.string() + " calls itself shard " + std::to_string(info.index + 1) +
                         " of " + std::to_string(info.count) + ", contrary to its name");
    }
    if (i == 0) merged.metadata = std::move(shard.metadata);
    merged.tensors.merge(shard.tensors);
    merged.integers.merge(shard.integers);
    if (!shard.tensors.empty()) {
      return input_error(shard_path.string() + ": tensor " + quote(shard.tensors.begin()->first) +
                         " is also in an earlier shard");
    }
  }
  return StoredFiles{path, std::move(merged), storage};
}

Result<ModelFile> open_gguf_model(std::shared_ptr<const StoredFiles> files) {
  const fs::path& path = files->path;
  const GgufFile& file = *files->gguf();
  ModelStorage* const storage = files->storage.get();
  ModelFile model;
  model.path = path;
  model.format = "gguf";
  const std::string name = path.string();
  OUTRIDER_TRY(model.tokenizer, gguf_tokenizer_spec(file, name));
  OUTRIDER_TRY(model.config, gguf_model_config(file, model.tokenizer, name));
  model.chat_template_file = name;
  const auto chat_template = GgufMetadata(file, name).string("tokenizer.chat_template");
  if (chat_template.ok()) {
    model.chat_template = chat_template->value_or("");
  } else {
    model.chat_template_problem = chat_template.error().message;
  }
  const TensorLookup lookup = [&](const std::string& gguf_name) -> Result<TensorView> {
    const auto it = file.tensors.find(gguf_name);
    if (it == file.tensors.end()) return input_error(name + ": tensor " + gguf_name + " is missing");
    return it->second;
  };
  const TensorSource source{.has = [&](const std::string& tensor) { return file.tensors.contains(tensor); },
                            .find = lookup};
  const ModelFamily& family = *find_family(model.config.family);
  const std::vector<TensorName> names = gguf_names(family);
  const StoredLayout layout{.layers = kGgufLayers, .names = names};
  OUTRIDER_RETURN_IF_ERROR(
      attach_tensors(expected_lookup(layout, source, model.config, storage), storage, &model));
  if (family.has_interleaved_rows) uninterleave_model(storage, &model);
  describe(file, &model);
  model.storage = files->storage;
  model.stored = std::move(files);
  return model;
}

}  // namespace outrider
