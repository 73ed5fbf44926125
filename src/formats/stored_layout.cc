// SPDX-License-Identifier: Apache-2.0
#include "formats/stored_layout.h"

#include <cstring>
#include <utility>
#include <vector>

namespace outrider {
namespace {

// An expected name in its parts: "model.layers.", "3.", "self_attn.q_norm", ".1", ".weight". Those of tensors
// outside of layers begin with the third, and the fourth is empty for most.
struct NameParts {
  std::string_view layer;
  std::string_view stem;
  std::string_view head;
  std::string_view kind;
};

NameParts split(std::string_view name) {
  constexpr std::string_view kLayers = "model.layers.";
  NameParts parts;
  const size_t dot = name.rfind('.');
  parts.kind = name.substr(dot);
  parts.stem = name.substr(0, dot);
  if (!name.starts_with(kLayers)) return parts;
  const size_t end = name.find('.', kLayers.size()) + 1;
  parts.layer = name.substr(kLayers.size(), end - kLayers.size());
  parts.stem = name.substr(end, dot - end);
  const size_t head = parts.stem.find_last_not_of("0123456789");
  if (parts.stem[head] != '.') return parts;
  parts.head = parts.stem.substr(head);
  parts.stem = parts.stem.substr(0, head);
  return parts;
}

struct StoredPiece {
  std::string name;
  Piece piece = Piece::kWhole;
  int64_t head = 0;
};

// The stored names of an expected tensor, in the order in which they count.
std::vector<StoredPiece> stored_pieces(const StoredLayout& layout, std::string_view expected) {
  const NameParts parts = split(expected);
  std::vector<StoredPiece> pieces;
  const auto add = [&](const TensorName& name) {
    const bool is_row = name.piece == Piece::kHead && !parts.head.empty();
    std::string full(parts.layer.empty() ? "" : layout.layers);
    full.append(parts.layer).append(name.stored).append(is_row ? "" : parts.head);
    if (name.piece != Piece::kBuffer) full.append(parts.kind);
    const bool is_whole = name.piece == Piece::kBuffer || (name.piece == Piece::kHead && !is_row);
    const Piece piece = is_whole ? Piece::kWhole : name.piece;
    pieces.push_back({std::move(full), piece, is_row ? std::stoll(std::string(parts.head.substr(1))) : 0});
  };
  for (const TensorName& name : layout.names) {
    if (name.expected == parts.stem) add(name);
  }
  if (pieces.empty()) add({parts.stem, parts.stem});
  return pieces;
}

// Some files leave out the name of the base model, which begins the others' names.
std::string without_base(const std::string& name) { return name.substr(name.find('.') + 1); }

template <typename Number>
void transpose(const TensorView& view, std::byte* out) {
  const auto* from = reinterpret_cast<const Number*>(view.data);
  auto* to = reinterpret_cast<Number*>(out);
  const int64_t rows = view.rows(), cols = view.cols();
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t col = 0; col < cols; ++col) to[col * rows + row] = from[row * cols + col];
  }
}

Result<TensorView> transposed(const TensorView& view, const std::string& name, ModelStorage* storage) {
  if (block_elements(view.dtype) != 1 || view.data == nullptr)
    return input_error("tensor " + name + " is stored transposed, and its type " +
                       std::string(dtype_name(view.dtype)) + " cannot be; use f32, f16 or bf16");
  Buffer& copy = storage->copies.emplace_back(static_cast<size_t>(view.bytes()));
  const TensorView whole = aligned(view, *storage);
  view.dtype == DType::kF32 ? transpose<uint32_t>(whole, copy.data())
                            : transpose<uint16_t>(whole, copy.data());
  return TensorView{view.dtype, {view.shape[1], view.shape[0]}, copy.data()};
}

// Rows of a fused tensor: `count` times `rows` rows, `stride` apart.
struct Rows {
  int64_t begin = 0;
  int64_t rows = 0;
  int64_t count = 1;
  int64_t stride = 0;
};

Rows rows_of(Piece piece, FusedRows order, const ModelConfig& config) {
  const int64_t dim = config.head_dim;
  const int64_t groups = order == FusedRows::kGroups ? config.kv_head_count : 1;
  const int64_t queries = config.head_count / groups * dim;
  const int64_t keys = config.kv_head_count / groups * dim;
  const int64_t stride = queries + 2 * keys;
  switch (piece) {
    case Piece::kQueries:
      return {0, queries, groups, stride};
    case Piece::kKeys:
      return {queries, keys, groups, stride};
    case Piece::kValues:
      return {queries + keys, keys, groups, stride};
    case Piece::kGate:
      return {0, config.ffn_size, 1, 2 * config.ffn_size};
    case Piece::kUp:
      return {config.ffn_size, config.ffn_size, 1, 2 * config.ffn_size};
    case Piece::kWhole:
    case Piece::kHead:
    case Piece::kBuffer:
      break;
  }
  return {};
}

Result<TensorView> head_row(const TensorView& view, const StoredPiece& piece) {
  if (view.shape.size() != 2 || view.shape[0] <= piece.head)
    return input_error("tensor " + piece.name + ": expected a row for each head");
  TensorView row = view.rows_from(piece.head, 1);
  row.shape = {view.shape[1]};
  return row;
}

Result<TensorView> cut(const TensorView& fused, const std::string& name, const Rows& part,
                       ModelStorage* storage) {
  const int64_t stored_rows = fused.shape.front();
  if (stored_rows == part.rows * part.count) return fused;  // not fused in this file
  if (stored_rows != part.stride * part.count) {
    return input_error("tensor " + name + ": expected " + std::to_string(part.stride * part.count) +
                       " rows by the model's configuration, found " + std::to_string(stored_rows));
  }
  if (part.count == 1 && fused.shape.size() == 2) return fused.rows_from(part.begin, part.rows);
  const auto row_of = [&](int64_t row) {
    return row / part.rows * part.stride + part.begin + row % part.rows;
  };
  return copy_rows(fused, part.rows * part.count, row_of, storage);
}

}  // namespace

std::string stored_name(const StoredLayout& layout, std::string_view expected) {
  return stored_pieces(layout, expected).front().name;
}

TensorLookup expected_lookup(const StoredLayout& layout, const TensorSource& source,
                             const ModelConfig& config, ModelStorage* storage) {
  return [&layout, &source, &config, storage](const std::string& expected) -> Result<TensorView> {
    const std::vector<StoredPiece> pieces = stored_pieces(layout, expected);
    StoredPiece chosen = pieces.front();
    for (const StoredPiece& piece : pieces) {
      const std::string shorter = without_base(piece.name);
      if (!source.has(piece.name) && !source.has(shorter)) continue;
      chosen = piece;
      if (!source.has(piece.name)) chosen.name = shorter;
      break;
    }
    OUTRIDER_TRY(TensorView view, source.find(chosen.name));
    const bool is_in_layer = expected.starts_with("model.layers.");
    if (layout.is_transposed && is_in_layer && view.shape.size() == 2) {
      OUTRIDER_TRY(view, transposed(view, chosen.name, storage));
    }
    if (chosen.piece == Piece::kWhole) return view;
    if (chosen.piece == Piece::kHead) return head_row(view, chosen);
    return cut(view, chosen.name, rows_of(chosen.piece, layout.fused_rows, config), storage);
  };
}

}  // namespace outrider
