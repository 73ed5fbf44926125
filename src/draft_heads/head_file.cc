// SPDX-License-Identifier: Apache-2.0
#include "draft_heads/head_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "formats/hf/safetensors_directory.h"
#include "formats/model_tensors.h"
#include "kernels/kernel_table.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

struct Kind {
  HeadKind kind;
  std::string_view name;
};
constexpr std::array kKinds = {
    Kind{HeadKind::kEagle, "Eagle"}, Kind{HeadKind::kEagle3, "Eagle3"}, Kind{HeadKind::kMedusa, "Medusa"},
    Kind{HeadKind::kMtp, "MTP"},     Kind{HeadKind::kMoa, "MoA"},       Kind{HeadKind::kDFlash, "DFlash"},
};

std::optional<HeadKind> recognise(const std::map<std::string, SafetensorsEntry, std::less<>>& tensors) {
  const auto has = [&](std::string_view name) { return tensors.contains(name); };
  const auto ends = [&](std::string_view end) {
    return std::ranges::any_of(tensors, [&](const auto& tensor) { return tensor.first.ends_with(end); });
  };
  if (has("Ekv2E.weight") || has("self_attention.self_attn.q_proj.weight")) return HeadKind::kMoa;
  if (has("mtp.fc.weight") || ends(".eh_proj.weight")) return HeadKind::kMtp;
  if (has("0.0.linear.weight") || has("medusa_head.0.0.linear.weight")) return HeadKind::kMedusa;
  if (!has("fc.weight")) return std::nullopt;
  if (has("midlayer.hidden_norm.weight") || has("layers.0.hidden_norm.weight")) return HeadKind::kEagle3;
  if (has("hidden_norm.weight")) return HeadKind::kDFlash;
  if (has("layers.0.self_attn.q_proj.weight")) return HeadKind::kEagle;
  return std::nullopt;
}

std::string shape_text(const Shape& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

uint64_t fnv1a(uint64_t hash, std::span<const std::byte> bytes) {
  for (const std::byte byte : bytes) hash = (hash ^ static_cast<uint64_t>(byte)) * 0x100000001b3;
  return hash;
}

// Files of Medusa's first checkpoints, beside config.json.
constexpr std::string_view kMedusaFile = "medusa_lm_head.safetensors";
constexpr std::string_view kMedusaPickle = "medusa_lm_head.pt";

struct OpenTensors {
  std::shared_ptr<ModelStorage> storage;
  SafetensorsDirectory directory;
};

Result<OpenTensors> open_tensors(const fs::path& directory) {
  auto storage = std::make_shared<ModelStorage>();
  std::error_code ignored;
  if (fs::exists(directory / kMedusaFile, ignored)) {
    OUTRIDER_TRY(SafetensorsDirectory tensors,
                 SafetensorsDirectory::open(directory, storage->files, std::string(kMedusaFile)));
    return OpenTensors{std::move(storage), std::move(tensors)};
  }
  if (fs::exists(directory / kMedusaPickle, ignored)) {
    return input_error(fmt::format(
        "{}: a pickle may run code and is not read; write its tensors to {} once: python -c \"import torch, "
        "safetensors.torch; safetensors.torch.save_file({{name: x.clone() for name, x in torch.load('{}', "
        "map_location='cpu', weights_only=True).items()}}, '{}')\"",
        (directory / kMedusaPickle).string(), kMedusaFile, kMedusaPickle, kMedusaFile));
  }
  OUTRIDER_TRY(SafetensorsDirectory tensors, SafetensorsDirectory::open(directory, storage->files));
  return OpenTensors{std::move(storage), std::move(tensors)};
}

Result<HeadFile> make_head(HeadKind kind, const fs::path& directory, OpenTensors opened) {
  OUTRIDER_TRY(JsonFile config, JsonFile::read(directory / "config.json"));
  const auto& tensors = opened.directory.tensors();
  ModelFile file;
  file.path = directory;
  file.format = "safetensors";
  for (const auto& [name, entry] : tensors) {
    if (!entry.dtype) continue;
    file.tensors.emplace(name, aligned({*entry.dtype, entry.shape, entry.data.data()}, *opened.storage));
  }
  for (const MappedFile& mapped : opened.storage->files) {
    file.mapped.push_back(mapped.bytes());
    file.stamps.push_back(mapped.stamp());
  }
  file.storage = std::move(opened.storage);
  return HeadFile{.kind = kind, .config = std::move(config), .file = std::move(file), .tensors = tensors};
}

}  // namespace

std::optional<HeadKind> head_kind_named(std::string_view name) {
  const auto found = std::ranges::find(kKinds, name, &Kind::name);
  return found == kKinds.end() ? std::nullopt : std::optional(found->kind);
}

std::string_view head_kind_name(HeadKind kind) { return std::ranges::find(kKinds, kind, &Kind::kind)->name; }

Result<HeadFile> open_head(const fs::path& directory) {
  std::error_code ignored;
  if (!fs::is_directory(directory, ignored)) {
    return input_error(directory.string() +
                       ": expected the directory of a drafter, with config.json and model.safetensors; it is "
                       "not there");
  }
  OUTRIDER_TRY(OpenTensors opened, open_tensors(directory));
  if (const std::optional<HeadKind> kind = recognise(opened.directory.tensors()))
    return make_head(*kind, directory, std::move(opened));
  return input_error(directory.string() +
                     ": its tensors are those of no known drafter; expected the layout of an EAGLE, EAGLE-3, "
                     "Medusa, MTP, Mixture of Attentions or DFlash checkpoint");
}

Result<HeadFile> open_head_for(HeadKind kind, const fs::path& directory, std::string_view fingerprint) {
  const std::string_view name = head_kind_name(kind);
  if (directory.empty()) {
    return usage_error(fmt::format(
        "decoding_type {} expects speculative_model, the directory of its checkpoint; found none", name));
  }
  OUTRIDER_TRY(HeadFile head, open_head(directory));
  if (head.kind != kind) {
    return head.fail(
        fmt::format("holds a drafter of the kind {}, found decoding_type {}; leave decoding_type out",
                    head_kind_name(head.kind), name));
  }
  OUTRIDER_RETURN_IF_ERROR(check_target(head, fingerprint));
  return head;
}

Result<std::optional<HeadFile>> find_head(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return std::optional<HeadFile>();
  auto opened = open_tensors(path);
  if (!opened.ok()) {
    // Others leave nothing that could be a head's.
    if (fs::exists(path / kMedusaPickle, ignored) || fs::exists(path / kMedusaFile, ignored))
      return std::move(opened).error();
    return std::optional<HeadFile>();
  }
  const auto& tensors = opened->directory.tensors();
  const std::optional<HeadKind> kind = recognise(tensors);
  // A whole model may bring a head along.
  if (!kind || tensors.contains("model.embed_tokens.weight")) return std::optional<HeadFile>();
  OUTRIDER_TRY(HeadFile head, make_head(*kind, path, std::move(*opened)));
  return std::optional<HeadFile>(std::move(head));
}

Status check_head_tensors(const HeadFile& head, std::span<const HeadTensor> expected,
                          const std::function<bool(std::string_view)>& is_ignored) {
  const std::string_view kind = head_kind_name(head.kind);
  for (const HeadTensor& tensor : expected) {
    const auto found = head.tensors.find(tensor.name);
    if (found == head.tensors.end()) {
      if (tensor.is_optional) continue;
      return head.fail(fmt::format("tensor {} of a {} drafter is missing", tensor.name, kind));
    }
    if (found->second.shape == tensor.shape) continue;
    return head.fail(fmt::format("tensor {}: expected the shape {}, found {}", tensor.name,
                                 shape_text(tensor.shape), shape_text(found->second.shape)));
  }
  for (const auto& [name, entry] : head.tensors) {
    if (is_ignored && is_ignored(name)) continue;
    if (std::ranges::find(expected, name, &HeadTensor::name) != expected.end()) continue;
    return head.fail(fmt::format("tensor {} does not belong to a {} drafter of this config", name, kind));
  }
  return {};
}

std::string target_fingerprint(const ModelFile& target) {
  uint64_t hash = 0xcbf29ce484222325;
  std::vector<float> values;
  for (const auto& [name, tensor] : target.tensors) {
    if (!name.ends_with("norm.weight")) continue;
    values.resize(static_cast<size_t>(tensor.rows() * tensor.cols()));
    dequantize_row(tensor.dtype, tensor.data, values.data(), std::ssize(values));
    hash = fnv1a(fnv1a(hash, std::as_bytes(std::span(name))), std::as_bytes(std::span(values)));
  }
  return fmt::format("{:016x}", hash);
}

Status check_target(const HeadFile& head, std::string_view fingerprint) {
  OUTRIDER_TRY(const auto named, head.config.root().string("outrider_target"));
  if (!named || *named == fingerprint) return {};
  return head.fail(
      fmt::format("this {} drafter was trained for another target (fingerprint {}, the target's is {}); "
                  "train one for this "
                  "target with outrider-train, or name the target it belongs to",
                  head_kind_name(head.kind), *named, fingerprint));
}

}  // namespace outrider
