// SPDX-License-Identifier: Apache-2.0
// open_model() of model_file.h, apart from it because it knows every container.
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string_view>
#include <utility>

#include "formats/gguf/gguf_model.h"
#include "formats/hf/hf_directory.h"
#include "formats/model_file.h"
#include "formats/random_model.h"
#include "formats/stored_files.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

std::string spelling(const TokenizerSpec& tokenizer, std::optional<TokenId> id) {
  if (!id || *id < 0 || static_cast<size_t>(*id) >= tokenizer.pieces.size()) return {};
  return tokenizer.pieces[static_cast<size_t>(*id)];
}

Result<ModelFile> open_by_kind(const fs::path& path) {
  if (is_shape_path(path)) return open_shape(path);
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) return input_error("no such model: " + path.string());
  if (fs::is_directory(status)) return open_hf_directory(path);
  if (path.extension() == ".gguf" || begins_as_gguf(path)) {
    OUTRIDER_TRY(StoredFiles files, read_gguf_shards(path));
    return open_gguf_model(std::make_shared<const StoredFiles>(std::move(files)));
  }
  if (path.extension() == ".safetensors") {
    return input_error(path.string() + ": give the directory that holds it and config.json instead");
  }
  return input_error(path.string() + ": expected a Hugging Face directory or a .gguf file");
}

Result<ModelFile> describe_by_kind(const fs::path& path) {
  std::error_code ignored;
  const bool has_no_weights = fs::is_directory(path, ignored) && !has_hf_weights(path);
  return has_no_weights ? describe_hf_directory(path) : open_by_kind(path);
}

Result<ModelFile> open_stored(std::shared_ptr<const StoredFiles> files) {
  if (files->gguf() != nullptr) return open_gguf_model(std::move(files));
  const fs::path& path = files->path;
  return open_hf_directory(path, std::move(files));
}

Result<ModelFile> open_with(const fs::path& path, const std::function<Result<ModelFile>()>& open) {
  try {
    OUTRIDER_TRY(ModelFile model, open());
    model.bos_token = spelling(model.tokenizer, model.tokenizer.bos);
    model.eos_token = spelling(model.tokenizer, model.tokenizer.eos);
    return model;
  } catch (const std::bad_alloc&) {
    return resource_error(path.string() + ": out of memory");
  }
}

}  // namespace

Result<ModelFile> open_model(const fs::path& path) {
  return open_with(path, [&] { return open_by_kind(path); });
}

Result<ModelFile> open_model(std::shared_ptr<const StoredFiles> files) {
  return open_with(files->path, [&] { return open_stored(files); });
}

Result<ModelFile> describe_model(const fs::path& path) {
  return open_with(path, [&] { return describe_by_kind(path); });
}

}  // namespace outrider
