// SPDX-License-Identifier: Apache-2.0
#include "draft_heads/block/candidate_selector.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>

namespace outrider {
namespace {

const std::string kGate = "candidate_selector.hidden_projection";
const std::string kBefore = "candidate_selector.predecessor_codebook";
const std::string kAfter = "candidate_selector.successor_codebook";
const std::string kWeight = ".weight";

}  // namespace

bool CandidateSelector::is_in(const HeadFile& head) { return head.tensors.contains(kGate + kWeight); }

void CandidateSelector::append_tensors(const Sizes& sizes, std::vector<HeadTensor>& tensors) {
  tensors.push_back({.name = kGate + kWeight, .shape = {sizes.rank, sizes.hidden}});
  for (const std::string& table : {kBefore, kAfter})
    tensors.push_back({.name = table, .shape = {sizes.vocab, sizes.rank}});
}

ModelFile CandidateSelector::with_table_names(const ModelFile& file) {
  ModelFile renamed = file;
  for (const std::string& table : {kBefore, kAfter}) {
    const auto found = file.tensors.find(table);
    if (found != file.tensors.end()) renamed.tensors.emplace(table + kWeight, found->second);
  }
  return renamed;
}

Status CandidateSelector::plan(WeightLoader& loader) {
  OUTRIDER_RETURN_IF_ERROR(loader.plan({{kGate, sizes_.rank}}, sizes_.hidden, /*bias=*/false, gate_));
  OUTRIDER_RETURN_IF_ERROR(loader.plan_table({kBefore, sizes_.vocab}, sizes_.rank, before_));
  return loader.plan_table({kAfter, sizes_.vocab}, sizes_.rank, after_);
}

// Where logits are equal, the token with the lower id counts.
void CandidateSelector::choose(std::span<const float> place) {
  chosen_.resize(place.size());
  std::iota(chosen_.begin(), chosen_.end(), 0);
  const auto count =
      static_cast<ptrdiff_t>(std::min<size_t>(static_cast<size_t>(sizes_.candidates), place.size()));
  const auto logit = [&](TokenId token) { return place[static_cast<size_t>(token)]; };
  std::partial_sort(chosen_.begin(), chosen_.begin() + count, chosen_.end(),
                    [&](TokenId a, TokenId b) { return logit(a) != logit(b) ? logit(a) > logit(b) : a < b; });
  chosen_.resize(static_cast<size_t>(count));
}

std::span<const float> CandidateSelector::logits(LayerOps& ops, std::span<const float> place,
                                                 const float* state, std::span<const TokenId> before) {
  const auto rank = static_cast<size_t>(sizes_.rank);
  const auto vocab = static_cast<size_t>(sizes_.vocab);
  choose(place.first(std::min(place.size(), vocab)));
  gates_.resize(rank);
  latent_.resize(rank);
  codes_.resize(chosen_.size() * rank);
  ops.reserve(gate_, 1);
  ops.project(gate_, state, gates_.data(), 1);
  for (size_t i = 0; i < chosen_.size(); ++i) unpack_row(after_, chosen_[i], codes_.data() + i * rank);
  logits_.reserve(std::ssize(before), sizes_.vocab);
  std::fill_n(logits_.data(), before.size() * vocab, -std::numeric_limits<float>::infinity());
  for (size_t row = 0; row < before.size(); ++row) {
    unpack_row(before_, before[row], latent_.data());
    for (size_t r = 0; r < rank; ++r) latent_[r] *= gates_[r];
    for (size_t i = 0; i < chosen_.size(); ++i) {
      const auto token = static_cast<size_t>(chosen_[i]);
      logits_.data()[row * vocab + token] = std::inner_product(
          latent_.begin(), latent_.end(), codes_.begin() + static_cast<ptrdiff_t>(i * rank), place[token]);
    }
  }
  return {logits_.data(), before.size() * vocab};
}

}  // namespace outrider
