// SPDX-License-Identifier: Apache-2.0
// From the tensors that a file stores to the tensors that expected_tensors() names: other names, fused
// matrices, and matrices that are stored transposed.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "formats/model_config.h"
#include "formats/model_tensors.h"
#include "outrider/result.h"
#include "tensor/tensor_view.h"

namespace outrider {

// The part of a fused tensor that an expected tensor is.
enum class Piece : uint8_t {
  kWhole,
  kQueries,
  kKeys,
  kValues,
  kGate,
  kUp,
  kQueriesOfGated,  // of each head the first half, beside the gates of its output
  kGatesOfQueries,  // the other half
  kEvenRows,        // every second row, from the first on
  kOddRows,
};

// A tensor of a file that an expected tensor is cut from.
struct FusedTensor {
  const TensorView& view;
  const std::string& name;
  int64_t index = 0;  // the number at the end of the expected name
};
using CutPiece = Result<TensorView> (*)(const FusedTensor& fused, const ModelConfig& config,
                                        ModelStorage* storage);

// One of the pieces above, or a piece that one kind of layer has.
struct TensorPiece {
  constexpr TensorPiece(Piece usual) : usual(usual) {}
  constexpr TensorPiece(CutPiece cut) : cut(cut) {}

  Piece usual = Piece::kWhole;
  CutPiece cut = nullptr;  // or null
};

// How a file spells and orders what an expected tensor is a part of.
struct StoredForm {
  bool is_stacked = false;     // one tensor has all numbers of expected names, by its first dimension
  bool is_bare = false;        // its name has no ".weight", and "_bias" in the place of ".bias"
  bool is_transposed = false;  // a matrix of plain numbers is [inputs, outputs]; block types never are
};

// Both names are without ".weight" or ".bias", and names of layers are without the layer. A number at the end
// of an expected name, as in "self_attn.q_norm.3", is no part of `expected`: it is the index of a stacked
// tensor, takes the place of "#" in `stored`, or else follows it.
struct TensorName {
  std::string_view expected;
  std::string_view stored;
  TensorPiece piece = Piece::kWhole;
  StoredForm form = {};
};

// How a fused matrix of queries, keys and values orders its rows.
enum class FusedRows : uint8_t {
  kBlocks,  // all queries, all keys, all values
  kGroups,  // for each key-value head: its queries, its key, its value
};

// How files of a family store tensors.
struct StoredLayout {
  std::string_view layers = "model.layers.";  // before the number of a layer
  // A tensor may have several names, the first that the file has counts; one without an entry has its own.
  std::span<const TensorName> names = {};
  FusedRows fused_rows = FusedRows::kBlocks;
  bool is_transposed = false;  // matrices of layers are [inputs, outputs]
};

// The tensors of a file by their stored names.
struct TensorSource {
  std::function<bool(const std::string& name)> has;
  TensorLookup find;
};

// A matrix [n, k] as [k, n]. Error: its type cannot be transposed.
Result<TensorView> transpose(const TensorView& view, const std::string& name, ModelStorage* storage);

// The first of the names that an expected tensor may have.
std::string stored_name(const StoredLayout& layout, std::string_view expected);

// Looks up expected tensors in a file. Matrices in another order have sources in `storage`, vectors are
// copied into it. All arguments must outlive the result.
TensorLookup expected_lookup(const StoredLayout& layout, const TensorSource& source,
                             const ModelConfig& config, ModelStorage* storage);

}  // namespace outrider
