// SPDX-License-Identifier: Apache-2.0
#include "capi/callback_drafter.h"

#include <cstddef>
#include <cstring>
#include <string>

#include "capi/status.h"

namespace outrider {
namespace {

constexpr size_t kFirstSize = offsetof(outrider_drafter, feature_layers);  // of version 0.1

FeatureTaps taps_of(const outrider_drafter& drafter) {
  const std::span layers(drafter.feature_layers, drafter.feature_layer_count);
  return {.layers = {layers.begin(), layers.end()}, .final_norm = drafter.wants_final_norm};
}

// The drafter of a program of any version.
Result<outrider_drafter> checked_drafter(const outrider_drafter& given) {
  if (given.size != kFirstSize && given.size != sizeof(outrider_drafter)) {
    return usage_error("expected a drafter of size " + std::to_string(sizeof(outrider_drafter)) + ", found " +
                       std::to_string(given.size) + "; set size to sizeof(outrider_drafter)");
  }
  outrider_drafter drafter = {};
  std::memcpy(&drafter, &given, given.size);
  if (drafter.draft == nullptr) return usage_error("expected a draft function in the drafter, found none");
  if (drafter.feature_layers == nullptr && drafter.feature_layer_count > 0)
    return usage_error("expected feature_layers of the drafter, found a null pointer");
  const bool wants_features = drafter.feature_layer_count > 0 || drafter.wants_final_norm;
  if (wants_features != (drafter.absorb != nullptr))
    return usage_error("expected feature_layers or wants_final_norm of the drafter together with absorb");
  return drafter;
}

}  // namespace

CallbackDrafter::CallbackDrafter(const outrider_drafter& functions)
    : functions_(functions),
      traits_{.name = functions.name == nullptr ? "user" : functions.name, .features = taps_of(functions)} {}

CallbackDrafter::~CallbackDrafter() {
  if (functions_.destroy != nullptr) functions_.destroy(functions_.user);
}

void CallbackDrafter::begin(uint64_t sequence, std::span<const TokenId> prompt, uint64_t) {
  if (functions_.begin != nullptr) functions_.begin(functions_.user, sequence, prompt.data(), prompt.size());
}

Status CallbackDrafter::draft(std::span<const DraftRequest> requests, std::span<TokenTree> trees) {
  requests_.clear();
  trees_.clear();
  tree_pointers_.clear();
  trees_.reserve(trees.size());  // the pointers stay valid
  for (size_t i = 0; i < requests.size(); ++i) {
    requests_.push_back({.sequence = requests[i].sequence,
                         .tokens = requests[i].tokens.data(),
                         .token_count = requests[i].tokens.size(),
                         .prompt_length = static_cast<size_t>(requests[i].prompt_length),
                         .max_draft_len = requests[i].max_draft_len,
                         .max_nodes = requests[i].max_nodes});
    trees_.push_back({.tree = &trees[i]});
    tree_pointers_.push_back(&trees_.back());
  }
  const int result =
      functions_.draft(functions_.user, requests_.data(), tree_pointers_.data(), requests_.size());
  if (result == 0) return {};
  return input_error("the drafter returned " + std::to_string(result) + ", expected 0");
}

void CallbackDrafter::observe(uint64_t sequence, const TokenTree&, const Verdict& verdict) {
  if (functions_.observe == nullptr) return;
  functions_.observe(functions_.user, sequence, verdict.path.size() - 1, verdict.tokens.data(),
                     verdict.tokens.size());
}

void CallbackDrafter::absorb(std::span<const CommittedFeatures> committed) {
  features_.clear();
  rows_.clear();
  size_t count = 0;
  for (const CommittedFeatures& one : committed) count += one.rows.size();
  rows_.reserve(count);  // the pointers stay valid
  for (const CommittedFeatures& one : committed) {
    features_.push_back({.sequence = one.sequence,
                         .tokens = one.tokens.data(),
                         .token_count = one.tokens.size(),
                         .first = static_cast<size_t>(one.first),
                         .count = one.rows.size(),
                         .features = rows_.data() + rows_.size(),
                         .size = static_cast<size_t>(one.size)});
    for (size_t i = 0; i < one.rows.size(); ++i) rows_.push_back(one.at(i).data());
  }
  functions_.absorb(functions_.user, features_.data(), features_.size());
}

void CallbackDrafter::end(uint64_t sequence) {
  if (functions_.end != nullptr) functions_.end(functions_.user, sequence);
}

}  // namespace outrider

int outrider_tree_add(outrider_tree* tree, int parent, int32_t token, double probability) {
  const bool is_valid =
      parent >= 0 && parent < tree->tree->size() && token >= 0 && probability > 0 && probability <= 1;
  if (!is_valid) return -1;
  int node = -1;
  const outrider_status status = outrider::status_of([&] {
    node = tree->tree->add(parent, token, probability);
    return outrider::Status();
  });
  return status == OUTRIDER_OK ? node : -1;
}

outrider_status outrider_options_set_drafter(outrider_options* options, const outrider_drafter* drafter) {
  return outrider::status_of([&]() -> outrider::Status {
    OUTRIDER_TRY(const outrider_drafter checked, outrider::checked_drafter(*drafter));
    options->drafter = std::make_shared<outrider::CallbackDrafter>(checked);
    return {};
  });
}
