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

std::span<const float> CandidateSelector::logits(FloatAddress place, FloatAddress state,
                                                 std::span<const TokenId> before) {
  const auto rank = static_cast<size_t>(sizes_.rank);
  const auto vocab = static_cast<size_t>(sizes_.vocab);
  const std::span<const float> own = backend_.read(place, sizes_.vocab);
  choose(own);
  gates_.reserve(1, sizes_.rank);
  codes_.reserve(std::ssize(chosen_), sizes_.rank);
  latent_.reserve(std::ssize(before), sizes_.rank);
  backend_.reserve_product(gate_, 1);
  backend_.project(gate_, state, gates_.data(), 1);
  backend_.look_up(after_, chosen_, codes_.data());
  backend_.look_up(before_, before, latent_.data());
  const std::span<const float> gates = backend_.read(gates_.data(), sizes_.rank);
  const std::span<const float> codes = backend_.read(codes_.data(), std::ssize(chosen_) * sizes_.rank);
  const std::span<const float> latent = backend_.read(latent_.data(), std::ssize(before) * sizes_.rank);
  gated_.resize(rank);
  logits_.assign(before.size() * vocab, -std::numeric_limits<float>::infinity());
  for (size_t row = 0; row < before.size(); ++row) {
    for (size_t r = 0; r < rank; ++r) gated_[r] = latent[row * rank + r] * gates[r];
    for (size_t i = 0; i < chosen_.size(); ++i) {
      const auto token = static_cast<size_t>(chosen_[i]);
      logits_[row * vocab + token] = std::inner_product(
          gated_.begin(), gated_.end(), codes.begin() + static_cast<ptrdiff_t>(i * rank), own[token]);
    }
  }
  return logits_;
}

}  // namespace outrider
