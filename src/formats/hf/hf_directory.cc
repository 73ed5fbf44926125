// SPDX-License-Identifier: Apache-2.0
#include "formats/hf/hf_directory.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/quote.h"
#include "formats/families.h"
#include "formats/hf/hf_chat_template.h"
#include "formats/hf/hf_config.h"
#include "formats/hf/tensor_directory.h"
#include "formats/interleaved_rows.h"
#include "formats/json_file.h"
#include "formats/json_object.h"
#include "formats/model_tensors.h"
#include "formats/quantized/quantization.h"
#include "platform/mapped_file.h"
#include "tokenizer/tokenizer.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

bool has_file(const fs::path& directory, const char* name) {
  std::error_code ignored;
  return fs::exists(directory / name, ignored);
}

// The tokenizer of a directory; nullopt: it has no file of one. Error: it has only files that are not
// supported.
Result<std::optional<TokenizerSpec>> read_tokenizer(const fs::path& directory) {
  std::optional<TokenizerSpec> spec;
  if (has_file(directory, "tokenizer.json")) {
    OUTRIDER_TRY(spec, read_tokenizer_json(directory));
  } else if (has_file(directory, "vocab.json") && has_file(directory, "merges.txt")) {
    OUTRIDER_TRY(spec, read_gpt2_files(directory));
  } else if (has_file(directory, "tokenizer.model")) {
    return input_error(
        directory.string() +
        ": tokenizer.model (SentencePiece) is not supported; save the tokenizer as tokenizer.json");
  }
  return spec;
}

// Fills `metadata` with the scalars at the top of config.json and the metadata of safetensors files.
void describe(const JsonObject& config, const TensorDirectory& tensors, ModelFile* model) {
  for (const auto& [key, value] : config.fields()) {
    if (value.is_array() || value.is_object() || value.is_null()) continue;
    std::string_view text;
    model->metadata.emplace(
        printable(key),
        printable(value.get(text) == simdjson::SUCCESS ? text : std::string_view(simdjson::minify(value))));
  }
  for (const auto& [key, value] : tensors.metadata())
    model->metadata.emplace(printable(key), printable(value));
}

// The name with the prefix that the language model has in models that also see.
std::string with_prefix(const TensorDirectory& tensors, const std::string& name) {
  constexpr std::string_view kModel = "model.";
  const std::string after_model = name.starts_with(kModel) ? name.substr(kModel.size()) : name;
  for (const std::string& longer : {"language_model." + name, "model.language_model." + after_model}) {
    // Quantised matrices have several tensors with names that begin alike.
    const std::string stem = longer.substr(0, longer.rfind('.') + 1);
    const auto found = tensors.tensors().lower_bound(stem);
    if (found != tensors.tensors().end() && found->first.starts_with(stem)) return longer;
  }
  return name;
}

// A template that cannot be read blocks chats, and no other text.
void take_chat_template(const fs::path& directory, ModelFile* model) {
  model->chat_template_file = chat_template_path(directory).string();
  Result<std::string> source = read_chat_template(directory);
  if (source.ok()) {
    model->chat_template = std::move(source).value();
  } else {
    model->chat_template_problem = source.error().message;
  }
}

Result<ModelFile> read_configuration(const fs::path& directory) {
  ModelFile model;
  model.path = directory;
  if (!has_file(directory, "config.json")) {
    return input_error(directory.string() +
                       ": config.json is missing; expected a Hugging Face model directory");
  }
  OUTRIDER_TRY(JsonFile document, read_hf_document(directory));
  OUTRIDER_TRY(model.config, read_hf_config(document, directory));
  model.document = std::make_shared<const JsonFile>(std::move(document));
  return model;
}

Result<Quantization> quantization_of(const ModelFile& model, const fs::path& directory) {
  constexpr const char* kModelopt = "hf_quant_config.json";
  OUTRIDER_TRY(Quantization quantization, read_quantization(model.document->root()));
  if (quantization.method != QuantizationMethod::kNone || !has_file(directory, kModelopt))
    return quantization;
  OUTRIDER_TRY(const JsonFile document, JsonFile::read(directory / kModelopt));
  return read_modelopt_quantization(document.root());
}

}  // namespace

bool has_hf_weights(const fs::path& directory) {
  for (const char* name : {"model.safetensors", "model.safetensors.index.json", "pytorch_model.bin",
                           "pytorch_model.bin.index.json"}) {
    if (has_file(directory, name)) return true;
  }
  return false;
}

Result<ModelFile> describe_hf_directory(const fs::path& directory) {
  OUTRIDER_TRY(ModelFile model, read_configuration(directory));
  model.format = "no weights";
  OUTRIDER_TRY(std::optional<TokenizerSpec> tokenizer, read_tokenizer(directory));
  if (tokenizer) model.tokenizer = std::move(*tokenizer);
  take_chat_template(directory, &model);
  return model;
}

Result<StoredFiles> open_hf_tensors(const fs::path& directory) {
  const auto storage = std::make_shared<ModelStorage>();
  OUTRIDER_TRY(TensorDirectory tensors, TensorDirectory::open(directory, storage->files));
  return StoredFiles{directory, std::move(tensors), storage};
}

Result<ModelFile> open_hf_directory(const fs::path& directory, std::shared_ptr<const StoredFiles> files) {
  OUTRIDER_TRY(ModelFile model, read_configuration(directory));
  OUTRIDER_TRY(std::optional<TokenizerSpec> tokenizer, read_tokenizer(directory));
  if (!tokenizer) return input_error(directory.string() + ": tokenizer.json is missing");
  model.tokenizer = std::move(*tokenizer);
  take_chat_template(directory, &model);
  if (files == nullptr) {
    OUTRIDER_TRY(StoredFiles opened, open_hf_tensors(directory));
    files = std::make_shared<const StoredFiles>(std::move(opened));
  }
  const TensorDirectory& tensors = *files->directory();
  ModelStorage* const storage = files->storage.get();
  model.format = tensors.format();
  OUTRIDER_TRY(const Quantization quantization, quantization_of(model, directory));
  const QuantizedCheckpoint quantized{tensors.tensors(), quantization, directory.string(), storage->sources};
  const ModelFamily& family = *find_family(model.config.family);
  const TensorSource source{.has =
                                [&](const std::string& name) {
                                  const std::string stored = with_prefix(tensors, name);
                                  return tensors.tensors().contains(stored) ||
                                         has_quantized(quantized, stored);
                                },
                            .find = [&](const std::string& name) -> Result<TensorView> {
                              const std::string stored = with_prefix(tensors, name);
                              OUTRIDER_TRY(const auto matrix, find_quantized(quantized, stored));
                              return matrix ? *matrix : tensors.find(stored);
                            }};
  OUTRIDER_RETURN_IF_ERROR(
      attach_tensors(expected_lookup(family.hf_layout, source, model.config, storage), storage, &model));
  if (family.has_interleaved_hf_rows) uninterleave_model(storage, &model);
  describe(model.document->root(), tensors, &model);
  model.storage = files->storage;
  model.stored = std::move(files);
  return model;
}

}  // namespace outrider
