// SPDX-License-Identifier: Apache-2.0
#include "formats/stored_layout.h"

#include <memory>
#include <utility>
#include <vector>

#include "formats/derived_rows.h"

namespace outrider {
namespace {

// An expected name in its parts: "model.layers.", "3.", "self_attn.q_norm", ".1", ".weight". Names of tensors
// outside of layers begin with the third, and the fourth is empty for most.
struct NameParts {
  std::string_view layer;
  std::string_view stem;
  std::string_view number;
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
  const size_t number = parts.stem.find_last_not_of("0123456789");
  if (parts.stem[number] != '.') return parts;
  parts.number = parts.stem.substr(number);
  parts.stem = parts.stem.substr(0, number);
  return parts;
}

struct StoredPiece {
  std::string name;
  TensorPiece piece = Piece::kWhole;
  StoredForm form;
  int64_t index = 0;  // of a stacked tensor
};

StoredPiece stored_piece(const StoredLayout& layout, const TensorName& name, const NameParts& parts) {
  std::string full(parts.layer.empty() ? "" : layout.layers);
  full.append(parts.layer).append(name.stored);
  StoredPiece piece{.name = {}, .piece = name.piece, .form = name.form};
  piece.form.is_stacked = name.form.is_stacked && !parts.number.empty();
  const size_t place = full.find('#');
  const bool is_of_number = name.piece.cut != nullptr && !parts.number.empty();
  if (is_of_number || piece.form.is_stacked) {
    piece.index = std::stoll(std::string(parts.number.substr(1)));
  } else if (place != std::string::npos) {
    full.replace(place, 1, parts.number.substr(1));
  } else {
    full.append(parts.number);
  }
  if (!name.form.is_bare) {
    full.append(parts.kind);
  } else if (parts.kind == ".bias") {
    full.append("_bias");
  }
  piece.name = std::move(full);
  return piece;
}

// The stored names of an expected tensor, in the order in which they count.
std::vector<StoredPiece> stored_pieces(const StoredLayout& layout, std::string_view expected) {
  const NameParts parts = split(expected);
  std::vector<StoredPiece> pieces;
  for (const TensorName& name : layout.names) {
    if (name.expected == parts.stem) pieces.push_back(stored_piece(layout, name, parts));
  }
  if (pieces.empty()) pieces.push_back(stored_piece(layout, {parts.stem, parts.stem}, parts));
  return pieces;
}

// Some files leave out the name of the base model, which begins the others' names.
std::string without_base(const std::string& name) { return name.substr(name.find('.') + 1); }

TensorView add_source(std::unique_ptr<const RowSource> source, DType dtype, Shape shape,
                      ModelStorage* storage) {
  const RowSource* rows = storage->sources.emplace_back(std::move(source)).get();
  return {.dtype = dtype, .shape = std::move(shape), .source = rows};
}

bool is_plain(const TensorView& view) { return block_elements(view.dtype) == 1 && view.data != nullptr; }

// Rows of a fused tensor: `count` times `rows` rows, `stride` apart.
struct Rows {
  int64_t begin = 0;
  int64_t rows = 0;
  int64_t count = 1;
  int64_t stride = 0;
};

// The sizes of the layer and of the MLP that an expected tensor belongs to.
LayerSizes sizes_of(const NameParts& parts, const ModelConfig& config) {
  LayerSizes sizes = config.sizes_of(parts.layer.empty() ? 0 : std::stoll(std::string(parts.layer)));
  if (parts.stem.starts_with("mlp.experts.")) sizes.ffn_size = config.experts.ffn_size;
  return sizes;
}

Rows rows_of(Piece piece, FusedRows order, const LayerSizes& sizes) {
  const int64_t dim = sizes.head_dim;
  const int64_t groups = order == FusedRows::kGroups ? sizes.kv_head_count : 1;
  const int64_t queries = sizes.head_count / groups * dim;
  const int64_t keys = sizes.kv_head_count / groups * dim;
  const int64_t stride = queries + 2 * keys;
  switch (piece) {
    case Piece::kQueries:
      return {0, queries, groups, stride};
    case Piece::kKeys:
      return {queries, keys, groups, stride};
    case Piece::kValues:
      return {queries + keys, keys, groups, stride};
    case Piece::kQueriesOfGated:
      return {0, dim, sizes.head_count, 2 * dim};
    case Piece::kGatesOfQueries:
      return {dim, dim, sizes.head_count, 2 * dim};
    case Piece::kGate:
      return {0, sizes.ffn_size, 1, 2 * sizes.ffn_size};
    case Piece::kUp:
      return {sizes.ffn_size, sizes.ffn_size, 1, 2 * sizes.ffn_size};
    case Piece::kEvenRows:
    case Piece::kOddRows:
    case Piece::kWhole:
      break;
  }
  return {};
}

Result<TensorView> element_of(const TensorView& view, const StoredPiece& piece) {
  if (view.shape.size() < 2 || view.shape[0] <= piece.index)
    return input_error("tensor " + piece.name + ": expected more than " + std::to_string(piece.index) +
                       " parts in its first dimension");
  return view.element(piece.index);
}

TensorView every_second_row(const TensorView& view, int64_t first, ModelStorage* storage) {
  const int64_t count = view.shape.front() / 2;
  if (view.shape.size() == 1)
    return copy_rows(
        view, count, [&](int64_t row) { return first + 2 * row; }, storage);
  return add_source(std::make_unique<SteppedRows>(view, first, 2), view.dtype, {count, view.cols()}, storage);
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

Result<TensorView> transpose(const TensorView& view, const std::string& name, ModelStorage* storage) {
  if (is_plain(view)) {
    return add_source(std::make_unique<TransposedRows>(view), view.dtype, {view.shape[1], view.shape[0]},
                      storage);
  }
  return input_error("tensor " + name + " is stored transposed, and its type " +
                     std::string(dtype_name(view.dtype)) + " cannot be; use f32, f16 or bf16");
}

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
    if (chosen.form.is_stacked) {
      OUTRIDER_TRY(view, element_of(view, chosen));
    }
    if (layout.is_transposed && expected.starts_with("model.layers.") && view.shape.size() == 2) {
      OUTRIDER_TRY(view, transpose(view, chosen.name, storage));
    }
    if (chosen.form.is_transposed && view.shape.size() == 2 && is_plain(view)) {
      OUTRIDER_TRY(view, transpose(view, chosen.name, storage));
    }
    if (chosen.piece.cut != nullptr)
      return chosen.piece.cut({view, chosen.name, chosen.index}, config, storage);
    const Piece piece = chosen.piece.usual;
    if (piece == Piece::kWhole) return view;
    if (piece == Piece::kEvenRows) return every_second_row(view, 0, storage);
    if (piece == Piece::kOddRows) return every_second_row(view, 1, storage);
    const LayerSizes sizes = sizes_of(split(expected), config);
    return cut(view, chosen.name, rows_of(piece, layout.fused_rows, sizes), storage);
  };
}

}  // namespace outrider
