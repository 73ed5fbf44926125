// SPDX-License-Identifier: Apache-2.0
#include "draft_heads/head_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/fnv1a.h"
#include "config/message_text.h"
#include "config/methods.h"
#include "config/option_value.h"
#include "draft_heads/gguf_head.h"
#include "draft_heads/gguf_module.h"
#include "formats/gguf/gguf_model.h"
#include "formats/hf/hf_directory.h"
#include "formats/hf/tensor_directory.h"
#include "formats/model_tensors.h"
#include "formats/quantized/quantization.h"
#include "formats/stored_files.h"
#include "kernels/kernel_table.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

// The tensors that stand for a quantised matrix, by the ends of their names.
constexpr std::string_view kCodes[] = {".weight", ".weight_packed", ".qweight"};
constexpr std::string_view kOtherParts[] = {
    ".weight_scale", ".weight_scale_inv", ".weight_shape", ".weight_zero_point",
    ".weight_g_idx", ".qzeros",           ".scales",       ".g_idx"};

// The name of the matrix with codes stored as `name`: "fc.weight" of "fc.weight_packed"; or nullopt.
std::optional<std::string> matrix_of(std::string_view name) {
  for (const std::string_view end : kCodes) {
    if (name.ends_with(end)) return fmt::format("{}.weight", name.substr(0, name.size() - end.size()));
  }
  return std::nullopt;
}

// The method that a head's tensors are for, by their names.
std::optional<Method> recognise(const StoredTensors& tensors) {
  std::vector<std::string> names;
  for (const auto& [name, entry] : tensors) names.push_back(matrix_of(name).value_or(name));
  const std::vector<std::string_view> views(names.begin(), names.end());
  return recognise_head(views);
}

// The file of weights in a directory that bears the name of a method's first checkpoints.
std::optional<std::string> find_named_weights(const fs::path& directory) {
  std::error_code ignored;
  for (const MethodRow& row : method_table()) {
    for (const std::string_view name : split(row.head.weight_files, '|')) {
      if (!name.empty() && fs::exists(directory / name, ignored)) return std::string(name);
    }
  }
  return std::nullopt;
}

std::string head_methods() {
  std::vector<std::string_view> names;
  for (const MethodRow& row : method_table()) {
    if (row.needs == MethodNeeds::kHead) names.push_back(row.name);
  }
  return joined(names);
}

Result<StoredFiles> open_tensors(const fs::path& directory) {
  const auto named = find_named_weights(directory);
  if (!named) return open_hf_tensors(directory);
  const auto storage = std::make_shared<ModelStorage>();
  OUTRIDER_TRY(TensorDirectory tensors, TensorDirectory::open_file(directory, storage->files, *named));
  return StoredFiles{directory, std::move(tensors), storage};
}

// Adds the quantised matrices to head.file.tensors as rows of numbers. In head.tensors each is one tensor
// then.
Status attach_quantized(ModelStorage& storage, HeadFile& head) {
  OUTRIDER_TRY(const Quantization quantization, read_quantization(head.config.root()));
  const StoredTensors stored = head.tensors;
  const QuantizedCheckpoint checkpoint{stored, quantization, head.file.path.string(), storage.sources};
  for (const auto& [name, codes] : stored) {
    const std::optional<std::string> whole = matrix_of(name);
    if (!whole) continue;
    OUTRIDER_TRY(const auto matrix, find_quantized(checkpoint, *whole));
    if (!matrix) continue;
    head.file.tensors.insert_or_assign(*whole, *matrix);
    head.tensors.erase(name);
    const std::string module = whole->substr(0, whole->rfind('.'));
    for (const std::string_view part : kOtherParts) head.tensors.erase(module + std::string(part));
    head.tensors.insert_or_assign(*whole,
                                  StoredTensor{codes.dtype_name, std::nullopt, matrix->shape, codes.data});
  }
  return {};
}

Result<HeadFile> make_head(Method method, const std::shared_ptr<const StoredFiles>& files) {
  OUTRIDER_TRY(JsonFile config, JsonFile::read(files->path / "config.json"));
  const TensorDirectory& directory = *files->directory();
  ModelFile file;
  file.path = files->path;
  file.format = directory.format();
  for (const auto& [name, entry] : directory.tensors()) {
    if (!entry.dtype) continue;
    file.tensors.emplace(name, aligned({*entry.dtype, entry.shape, entry.data.data()}, *files->storage));
  }
  files->storage->list_files(file);
  file.storage = files->storage;
  file.stored = files;
  HeadFile head{
      .method = method, .config = std::move(config), .file = std::move(file), .tensors = directory.tensors()};
  OUTRIDER_RETURN_IF_ERROR(attach_quantized(*files->storage, head));
  return head;
}

// A whole model may bring a head along. In models that also see, the names of the language model are longer.
bool is_whole_model(Method method, const StoredTensors& tensors) {
  if (method_row(method).head.has_own_embedding) return false;
  constexpr std::array kEmbeddings = {"model.embed_tokens.weight", "language_model.model.embed_tokens.weight",
                                      "model.language_model.embed_tokens.weight"};
  return std::ranges::any_of(kEmbeddings, [&](const char* name) { return tensors.contains(name); });
}

Result<std::optional<HeadFile>> head_of(GgufHead found) {
  const std::optional<Method> method = recognise(found.tensors);
  if (!method) {
    return input_error(found.file.path.string() + ": its tensors are those of no known drafter");
  }
  return std::optional(HeadFile{.method = *method,
                                .config = std::move(found.config),
                                .file = std::move(found.file),
                                .tensors = std::move(found.tensors)});
}

// A file with GGUF's ending is one, whatever it holds: an error says what is wrong with it.
bool is_gguf(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) && (path.extension() == ".gguf" || begins_as_gguf(path));
}

// The head in these files; nullopt: they hold only a model, or one with a module where `may_be_model` is
// false.
Result<std::optional<HeadFile>> head_in(const std::shared_ptr<const StoredFiles>& files, bool may_be_model) {
  if (files->gguf() != nullptr) {
    OUTRIDER_TRY(auto found, find_gguf_head(files));
    if (!found) {
      OUTRIDER_TRY(found, find_gguf_module(files, may_be_model));
    }
    return found ? head_of(std::move(*found)) : std::optional<HeadFile>();
  }
  const StoredTensors& tensors = files->directory()->tensors();
  const std::optional<Method> method = recognise(tensors);
  if (!method || (!may_be_model && is_whole_model(*method, tensors))) return std::optional<HeadFile>();
  OUTRIDER_TRY(HeadFile head, make_head(*method, files));
  return std::optional<HeadFile>(std::move(head));
}

Result<std::optional<HeadFile>> head_in(StoredFiles files) {
  return head_in(std::make_shared<const StoredFiles>(std::move(files)), /*may_be_model=*/true);
}

}  // namespace

Result<std::optional<HeadFile>> find_module(const ModelFile& model) {
  if (model.stored == nullptr) return std::optional<HeadFile>();
  if (model.stored->gguf() != nullptr || !find_named_weights(model.path))
    return head_in(model.stored, /*may_be_model=*/true);
  OUTRIDER_TRY(StoredFiles named, open_tensors(model.path));
  return head_in(std::move(named));
}

Result<HeadFile> open_head(const fs::path& directory) {
  std::error_code ignored;
  const bool is_file = directory.extension() == ".gguf" || is_gguf(directory);
  if (!is_file && !fs::is_directory(directory, ignored)) {
    return input_error(directory.string() +
                       ": expected the directory of a drafter, with config.json and its weights; it is "
                       "not there");
  }
  OUTRIDER_TRY(StoredFiles files, is_file ? read_gguf_shards(directory) : open_tensors(directory));
  OUTRIDER_TRY(auto head, head_in(std::move(files)));
  if (head) return std::move(*head);
  if (is_file) {
    return input_error(
        directory.string() +
        ": expected a drafter with the architecture eagle3 or dflash, or an MTP module (nextn), "
        "found a model alone");
  }
  return input_error(
      directory.string() +
      ": its tensors are those of no known drafter; expected the layout of a checkpoint of one "
      "of these methods: " +
      head_methods());
}

Result<HeadOrFiles> open_head_or_files(const fs::path& path) {
  HeadOrFiles found;
  std::error_code ignored;
  const bool is_file = is_gguf(path);
  if (!is_file && !fs::is_directory(path, ignored)) return found;
  auto opened = is_file ? read_gguf_shards(path) : open_tensors(path);
  const bool has_named_weights = !is_file && find_named_weights(path);
  if (!opened.ok()) {
    // Others leave nothing that could be a head's.
    if (is_file || has_named_weights) return std::move(opened).error();
    return found;
  }
  auto files = std::make_shared<const StoredFiles>(std::move(opened).value());
  OUTRIDER_TRY(found.head, head_in(files, /*may_be_model=*/false));
  if (!found.head && !has_named_weights) found.files = std::move(files);
  return found;
}

Status check_head_tensors(const HeadFile& head, std::span<const HeadTensor> expected,
                          const std::function<bool(std::string_view)>& is_ignored) {
  const std::string_view method = method_name(head.method);
  for (const HeadTensor& tensor : expected) {
    const auto found = head.tensors.find(tensor.name);
    if (found == head.tensors.end()) {
      if (tensor.is_optional) continue;
      return head.fail(fmt::format("tensor {} of a {} drafter is missing", tensor.name, method));
    }
    if (found->second.shape == tensor.shape) continue;
    return head.fail(fmt::format("tensor {}: expected the shape {}, found {}", tensor.name,
                                 shape_text(tensor.shape), shape_text(found->second.shape)));
  }
  for (const auto& [name, entry] : head.tensors) {
    if (is_ignored && is_ignored(name)) continue;
    if (std::ranges::find(expected, name, &HeadTensor::name) != expected.end()) continue;
    return head.fail(fmt::format("tensor {} does not belong to a {} drafter of this config", name, method));
  }
  return {};
}

Result<std::vector<float>> read_numbers(const HeadFile& head, const std::string& name) {
  const auto found = head.file.tensors.find(name);
  if (found == head.file.tensors.end()) {
    return head.fail(fmt::format("tensor {}: expected plain numbers, found the type {}", name,
                                 head.tensors.find(name)->second.dtype_name));
  }
  const TensorView& tensor = found->second;
  std::vector<float> numbers(static_cast<size_t>(tensor.rows() * tensor.cols()));
  std::vector<std::byte> made;
  for (int64_t row = 0; row < tensor.rows(); ++row)
    dequantize_row(tensor.dtype, tensor.row(row, made), numbers.data() + row * tensor.cols(), tensor.cols());
  return numbers;
}

std::string target_fingerprint(const ModelFile& target) {
  uint64_t hash = kFnv1aStart;
  std::vector<float> values;
  for (const auto& [name, tensor] : target.tensors) {
    if (!name.ends_with("norm.weight")) continue;
    values.resize(static_cast<size_t>(tensor.rows() * tensor.cols()));
    dequantize_row(tensor.dtype, tensor.data, values.data(), std::ssize(values));
    hash = fnv1a(std::as_bytes(std::span(values)), fnv1a(name, hash));
  }
  return fmt::format("{:016x}", hash);
}

std::string head_fingerprint(const HeadFile& head) {
  constexpr size_t kBytes = 256;  // of each tensor
  uint64_t hash = kFnv1aStart;
  for (const auto& [name, tensor] : head.tensors) {
    hash = fnv1a(std::as_bytes(std::span(tensor.shape)), fnv1a(name, hash));
    hash = fnv1a(tensor.data.first(std::min(tensor.data.size(), kBytes)), hash);
  }
  return fmt::format("{:016x}", hash);
}

Status check_head(const HeadFile& head, Method method, std::string_view fingerprint) {
  if (head.method != method) {
    return head.fail(
        fmt::format("holds a drafter of the kind {}, found decoding_type {}; leave decoding_type out",
                    method_name(head.method), method_name(method)));
  }
  OUTRIDER_TRY(const auto named, head.config.root().string("outrider_target"));
  if (!named || *named == fingerprint) return {};
  return head.fail(
      fmt::format("this {} drafter was trained for another target (fingerprint {}, the target's is {}); "
                  "train one for this "
                  "target with outrider-train, or name the target it belongs to",
                  method_name(head.method), *named, fingerprint));
}

}  // namespace outrider
