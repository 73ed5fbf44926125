// SPDX-License-Identifier: Apache-2.0
#include "formats/adapters/adapter_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <set>
#include <string_view>
#include <utility>

#include "base/quote.h"
#include "formats/adapters/adapter_tensors.h"
#include "formats/families.h"
#include "formats/gguf/gguf_config.h"
#include "formats/gguf/gguf_model.h"
#include "formats/interleaved_rows.h"
#include "formats/model_tensors.h"
#include "formats/stored_layout.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

// How files of an adapter name and order what they change. B has the rows of its matrix, whatever the
// orientation in which the matrix itself is stored.
struct AdapterLayout {
  std::vector<TensorName> names;
  std::string_view layers;
  FusedRows fused_rows = FusedRows::kBlocks;
  bool is_interleaved = false;

  StoredLayout view() const { return {.layers = layers, .names = names, .fused_rows = fused_rows}; }
};

AdapterLayout adapter_layout(const ModelFamily& family, bool is_gguf) {
  AdapterLayout layout;
  if (is_gguf) {
    layout = {gguf_names(family), kGgufLayers, FusedRows::kBlocks, family.has_interleaved_rows};
  } else {
    const StoredLayout& hf = family.hf_layout;
    layout = {{hf.names.begin(), hf.names.end()}, hf.layers, hf.fused_rows, family.has_interleaved_hf_rows};
  }
  for (TensorName& name : layout.names) name.form.is_transposed = false;
  return layout;
}

// Names that a tensor may also have, in models that see as well.
std::array<std::string, 3> spellings(const std::string& name) {
  constexpr std::string_view kModel = "model.";
  const std::string inner = name.starts_with(kModel) ? name.substr(kModel.size()) : name;
  return {name, "language_model." + name, "model.language_model." + inner};
}

// Splits the stored updates by the matrices of the model, and notes which of them were used.
class UpdateFinder {
 public:
  UpdateFinder(const AdapterTensors& adapter, const ModelConfig& config, const AdapterLayout& layout,
               ModelStorage* storage)
      : adapter_(adapter),
        layout_(layout),
        is_interleaved_(layout.is_interleaved),
        config_(config),
        storage_(storage) {
    stored_layout_ = layout_.view();
    source_ = {.has = [this](const std::string& name) { return key_of(name) != nullptr; },
               .find = [this](const std::string& name) { return find(name); }};
    lookup_ = expected_lookup(stored_layout_, source_, config_, storage_);
  }

  // The update of an expected tensor; nullopt: the adapter does not change it.
  Result<std::optional<LowRankUpdate>> update_of(const ExpectedTensor& expected) {
    found_ = nullptr;
    Result<TensorView> b = lookup_(expected.name);
    if (found_ == nullptr) return std::optional<LowRankUpdate>();
    if (!b.ok()) return b.error();
    const StoredUpdate& stored = found_->second;
    LowRankUpdate update{.matrix = expected.name.substr(0, expected.name.rfind('.')),
                         .a = *stored.a,
                         .b = *std::move(b),
                         .scale = stored.scale};
    OUTRIDER_RETURN_IF_ERROR(check_shapes(expected, update));
    if (is_interleaved_ && is_rotated(expected.name))
      update.b = uninterleave_rows(update.b, config_, storage_);
    used_.insert(found_->first);
    return std::optional<LowRankUpdate>(std::move(update));
  }

  // Error: a stored update that no tensor of the model took.
  Status check_all_used() const {
    for (const auto& [name, update] : adapter_.updates) {
      if (used_.contains(name)) continue;
      return input_error("it changes " + quote(name) +
                         ", which is no matrix of this model's layers that adapters can change");
    }
    return {};
  }

 private:
  using Entry = std::pair<const std::string, StoredUpdate>;

  const Entry* key_of(const std::string& name) const {
    for (const std::string& spelling : spellings(name)) {
      const auto entry = adapter_.updates.find(spelling);
      if (entry != adapter_.updates.end()) return &*entry;
    }
    return nullptr;
  }

  Result<TensorView> find(const std::string& name) {
    found_ = key_of(name);
    if (found_ == nullptr) return input_error("no update of " + name);
    return *found_->second.b;
  }

  static Status check_shapes(const ExpectedTensor& expected, const LowRankUpdate& update) {
    const int64_t rank = update.a.shape.front();
    const Shape a = {rank, expected.shape[1]}, b = {expected.shape[0], rank};
    if (update.a.shape == a && update.b.shape == b) return {};
    return input_error("expected shapes [rank, " + std::to_string(expected.shape[1]) + "] and [" +
                       std::to_string(expected.shape[0]) + ", rank] of the update of " + update.matrix +
                       ", found " + shape_text(update.a.shape) + " and " + shape_text(update.b.shape) +
                       "; the adapter is of another model");
  }

  const AdapterTensors& adapter_;
  const AdapterLayout& layout_;
  bool is_interleaved_;
  const ModelConfig& config_;
  ModelStorage* storage_;
  StoredLayout stored_layout_;
  TensorSource source_;
  TensorLookup lookup_;
  const Entry* found_ = nullptr;
  std::set<std::string_view> used_;
};

Status check_pairs(const AdapterTensors& adapter) {
  if (adapter.updates.empty()) return input_error("it has no low-rank updates");
  for (const auto& [name, update] : adapter.updates) {
    if (!update.a || !update.b)
      return input_error("one of the two matrices for " + quote(name) + " is missing");
    for (const TensorView& view : {*update.a, *update.b}) {
      if (view.shape.size() != 2 || view.shape[0] < 1 || view.shape[1] < 1)
        return input_error("expected two dimensions of the matrices for " + quote(name) + ", found " +
                           shape_text(view.shape));
    }
    if (name.find("embed") != std::string::npos || name.starts_with("token_embd"))
      return input_error("it changes the embedding, " + quote(name) + ", which is not supported");
  }
  return {};
}

// FNV-1a over 8 bytes at a time.
class AdapterFingerprint {
 public:
  void add(std::span<const std::byte> bytes) {
    for (; bytes.size() >= 8; bytes = bytes.subspan(8)) {
      uint64_t word = 0;
      std::memcpy(&word, bytes.data(), 8);
      mix(word);
    }
    for (const std::byte byte : bytes) mix(static_cast<uint64_t>(byte));
  }
  void add(const TensorView& view) {
    std::vector<std::byte> made;
    const auto size = static_cast<size_t>(row_bytes(view.dtype, view.cols()));
    for (int64_t row = 0; row < view.rows(); ++row) add({view.row(row, made), size});
  }
  uint64_t value() const { return value_; }

 private:
  void mix(uint64_t word) { value_ = std::rotl((value_ ^ word) * 0x100000001b3, 29); }
  uint64_t value_ = 0xcbf29ce484222325;
};

uint64_t adapter_fingerprint(const AdapterFile& adapter) {
  AdapterFingerprint fingerprint;
  for (const LowRankUpdate& update : adapter.updates) {
    fingerprint.add(std::as_bytes(std::span(update.matrix)));
    fingerprint.add(std::as_bytes(std::span(&update.scale, 1)));
    fingerprint.add(update.a);
    fingerprint.add(update.b);
  }
  return fingerprint.value();
}

Result<AdapterFile> arrange_updates(const AdapterTensors& tensors, const ModelConfig& config,
                                    ModelStorage* storage) {
  OUTRIDER_RETURN_IF_ERROR(check_pairs(tensors));
  const AdapterLayout layout = adapter_layout(*find_family(config.family), tensors.format == "gguf");
  UpdateFinder finder(tensors, config, layout, storage);
  AdapterFile adapter;
  adapter.format = tensors.format;
  for (const ExpectedTensor& expected : expected_tensors(config)) {
    const bool is_matrix =
        expected.shape.size() == 2 && !expected.is_plain && expected.name.ends_with(".weight");
    if (!is_matrix) continue;
    OUTRIDER_TRY(auto update, finder.update_of(expected));
    if (!update) continue;
    adapter.rank = std::max(adapter.rank, update->a.shape.front());
    adapter.updates.push_back(*std::move(update));
  }
  OUTRIDER_RETURN_IF_ERROR(finder.check_all_used());
  adapter.fingerprint = adapter_fingerprint(adapter);
  return adapter;
}

}  // namespace

Result<AdapterFile> open_adapter(const fs::path& path, const ModelConfig& config) {
  std::error_code ignored;
  const auto storage = std::make_shared<ModelStorage>();
  const bool is_gguf = begins_as_gguf(path);
  if (!is_gguf && !fs::exists(path / "adapter_config.json", ignored)) {
    return input_error(
        path.string() +
        ": expected an adapter: a folder with adapter_config.json, or a GGUF file, found neither");
  }
  OUTRIDER_TRY(const AdapterTensors tensors,
               is_gguf ? read_gguf_adapter(path, find_family(config.family)->gguf_architecture, *storage)
                       : read_peft_adapter(path, *storage));
  Result<AdapterFile> adapter = arrange_updates(tensors, config, storage.get());
  if (!adapter.ok()) return input_error(path.string() + ": " + adapter.error().message);
  adapter->path = path;
  adapter->storage = storage;
  return adapter;
}

}  // namespace outrider
