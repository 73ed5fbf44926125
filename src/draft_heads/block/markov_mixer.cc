// SPDX-License-Identifier: Apache-2.0
#include "draft_heads/block/markov_mixer.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "base/portable_math.h"

namespace outrider {
namespace {

constexpr std::pair<std::string_view, MarkovKind> kKinds[] = {
    {"vanilla", MarkovKind::kVanilla}, {"gated", MarkovKind::kGated}, {"rnn", MarkovKind::kRecurrent}};

std::string projection_name(MarkovKind kind) {
  return kind == MarkovKind::kGated ? "markov_head.gate_proj" : "markov_head.joint_proj";
}

float portable_tanh(float x) { return 2 * portable_sigmoid(2 * x) - 1; }

}  // namespace

Result<MarkovKind> read_markov_kind(const HeadFile& head) {
  OUTRIDER_TRY(const auto name, head.config.root().string("markov_head_type"));
  if (!name) return MarkovKind::kVanilla;
  for (const auto& [known, kind] : kKinds) {
    if (*name == known) return kind;
  }
  return head.fail(
      fmt::format("config.json: expected a markov_head_type of vanilla, gated or rnn, found {}", *name));
}

int64_t MarkovMixer::inputs() const {
  return sizes_.hidden + (sizes_.kind == MarkovKind::kRecurrent ? 2 : 1) * sizes_.rank;
}

int64_t MarkovMixer::outputs() const { return (sizes_.kind == MarkovKind::kRecurrent ? 3 : 1) * sizes_.rank; }

void MarkovMixer::append_tensors(const Sizes& sizes, std::vector<HeadTensor>& tensors) {
  const bool is_cell = sizes.kind == MarkovKind::kRecurrent;
  const int64_t inputs = sizes.hidden + (is_cell ? 2 : 1) * sizes.rank;
  const int64_t outputs = (is_cell ? 3 : 1) * sizes.rank;
  const std::string name = projection_name(sizes.kind);
  tensors.push_back({.name = name + ".weight", .shape = {outputs, inputs}});
  tensors.push_back({.name = name + ".bias", .shape = {outputs}});
}

Status MarkovMixer::plan(WeightLoader& loader) {
  return loader.plan({{projection_name(sizes_.kind), outputs()}}, inputs(), /*bias=*/true, projection_);
}

// A cell has [its numbers, embedding, state] as inputs, and gates have [state, embedding].
void MarkovMixer::mix(FloatAddress state, std::span<const int> from, FloatAddress embeddings,
                      int64_t tokens) {
  const bool is_cell = sizes_.kind == MarkovKind::kRecurrent;
  inputs_.reserve(tokens, inputs());
  outputs_.reserve(tokens, outputs());
  backend_.reserve_product(projection_, tokens);
  const int64_t rank = sizes_.rank;
  const FloatAddress embedded = inputs_.data() + (is_cell ? rank : sizes_.hidden);
  backend_.copy_strided({embeddings, rank, embedded, inputs(), tokens, rank});
  repeats_.assign(static_cast<size_t>(tokens), 0);
  const FloatAddress states = is_cell ? embedded + rank : inputs_.data();
  backend_.copy({state, sizes_.hidden, repeats_, states, inputs(), sizes_.hidden});
  if (is_cell) {
    next_.resize(static_cast<size_t>(tokens * rank));
    for (int64_t i = 0; i < tokens * rank; ++i)
      next_[static_cast<size_t>(i)] = cell(from, i / rank, i % rank);
    read_cells_.reserve(tokens, rank);
    backend_.write(next_, read_cells_.data());
    backend_.copy_strided({read_cells_.data(), rank, inputs_.data(), inputs(), tokens, rank});
  }
  backend_.project(projection_, inputs_.data(), outputs_.data(), tokens);
  mixed_.resize(static_cast<size_t>(tokens * rank));
  const std::span<const float> projected = backend_.read(outputs_.data(), tokens * outputs());
  if (is_cell) {
    step(projected, from);
  } else {
    gate(projected, backend_.read(embeddings, tokens * rank));
  }
  backend_.write(mixed_, embeddings);
}

// The number that a token's parent has left; 0 at the first place.
float MarkovMixer::cell(std::span<const int> from, int64_t row, int64_t column) const {
  if (from.empty()) return 0.0f;
  return cells_[static_cast<size_t>(from[static_cast<size_t>(row)] * sizes_.rank + column)];
}

void MarkovMixer::gate(std::span<const float> gates, std::span<const float> embeddings) {
  for (size_t i = 0; i < mixed_.size(); ++i) mixed_[i] = portable_sigmoid(gates[i]) * embeddings[i];
}

// joint [tokens, 3, rank]: gate, candidate and output of each cell
void MarkovMixer::step(std::span<const float> joint, std::span<const int> from) {
  const auto rank = static_cast<size_t>(sizes_.rank);
  for (size_t i = 0; i < mixed_.size(); ++i) {
    const size_t row = i / rank, column = i % rank;
    const float* const own = &joint[row * 3 * rank + column];
    const float gate = portable_sigmoid(own[0]);
    const float before = cell(from, static_cast<int64_t>(row), static_cast<int64_t>(column));
    next_[i] = gate * before + (1 - gate) * portable_tanh(own[rank]);
    mixed_[i] = portable_tanh(own[2 * rank]);
  }
  std::swap(cells_, next_);
}

}  // namespace outrider
