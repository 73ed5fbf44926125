// SPDX-License-Identifier: Apache-2.0
#include "draft_heads/block/markov_mixer.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

namespace outrider {
namespace {

constexpr std::pair<std::string_view, MarkovKind> kKinds[] = {
    {"vanilla", MarkovKind::kVanilla}, {"gated", MarkovKind::kGated}, {"rnn", MarkovKind::kRecurrent}};

std::string projection_name(MarkovKind kind) {
  return kind == MarkovKind::kGated ? "markov_head.gate_proj" : "markov_head.joint_proj";
}

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

int64_t MarkovMixer::inputs() const { return sizes_.hidden + (is_cell() ? 2 : 1) * sizes_.rank; }

int64_t MarkovMixer::outputs() const { return (is_cell() ? 3 : 1) * sizes_.rank; }

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

void MarkovMixer::reserve(int64_t tokens) {
  if (sizes_.kind == MarkovKind::kVanilla) return;
  inputs_.reserve(tokens, inputs());
  outputs_.reserve(tokens, outputs());
  backend_.reserve_product(projection_, tokens);
  if (is_cell()) before_.reserve(tokens, sizes_.rank);
}

// The cells of the call before, which there are as many of as its tokens.
void MarkovMixer::carry(std::span<const int> from, int64_t tokens) {
  if (!is_cell()) return;
  reserve(tokens);
  const int64_t rank = sizes_.rank;
  if (from.empty()) return clear_cells(tokens);
  backend_.copy({cells_.data(), rank, from, before_.data(), rank, rank});
}

void MarkovMixer::clear_cells(int64_t tokens) {
  if (is_cell()) backend_.clear(before_.data(), tokens * sizes_.rank);
}

// A cell has [its numbers, embedding, state] as inputs, and gates have [state, embedding].
void MarkovMixer::mix(const States& states, FloatAddress embeddings, int64_t tokens) {
  reserve(tokens);
  const int64_t rank = sizes_.rank, hidden = sizes_.hidden, width = inputs();
  const FloatAddress embedded = inputs_.data() + (is_cell() ? rank : hidden);
  backend_.copy_strided({embeddings, rank, embedded, width, tokens, rank});
  const FloatAddress to = is_cell() ? embedded + rank : inputs_.data();
  for (int64_t first = 0; first < tokens; first += states.count)
    backend_.copy_strided(
        {states.numbers, hidden, to + first * width, width, std::min(states.count, tokens - first), hidden});
  if (is_cell()) backend_.copy_strided({before_.data(), rank, inputs_.data(), width, tokens, rank});
  backend_.project(projection_, inputs_.data(), outputs_.data(), tokens);
  if (!is_cell()) return backend_.gate(outputs_.data(), embeddings, tokens * rank);
  cells_.reserve(tokens, rank);
  backend_.step_cells({.x = outputs_.data(),
                       .before = before_.data(),
                       .cells = cells_.data(),
                       .y = embeddings,
                       .rows = tokens,
                       .dim = rank});
}

}  // namespace outrider
