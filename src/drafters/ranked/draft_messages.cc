// SPDX-License-Identifier: Apache-2.0
#include "drafters/ranked/draft_messages.h"

#include <algorithm>

namespace outrider {
namespace {

// The keys that a draft model reads; the others stay at rank 0.
template <typename Archive, typename Options>
void each_key(Archive& archive, Options& options) {
  archive.field(options.decoding_type);
  archive.field(options.max_draft_len);
  archive.field(options.tree.kind);
  archive.field(options.tree.expansion);
  archive.field(options.tree.dynamic_tree_max_top_k);
  archive.field(options.tree.max_total_draft_tokens);
  archive.field(options.tree.children);
  archive.field(options.stop.assistant_confidence_threshold);
  archive.field(options.stop.entropy_threshold);
  archive.field(options.draft_temperature);
  archive.field(options.ranking_temperature);
  archive.field(options.vocabulary_match);
}

template <typename Archive, typename Sampling>
void each_number(Archive& archive, Sampling& sampling) {
  for (auto* number :
       {&sampling.repetition_penalty, &sampling.presence_penalty, &sampling.frequency_penalty,
        &sampling.temperature, &sampling.top_p, &sampling.min_p, &sampling.top_n_sigma, &sampling.typical_p,
        &sampling.xtc_probability, &sampling.xtc_threshold, &sampling.dry.multiplier, &sampling.dry.base})
    archive.field(*number);
  archive.field(sampling.dry.allowed_length);
  archive.field(sampling.dry.last_n);
  archive.field(sampling.top_k);
  archive.field(sampling.seed);
}

template <typename T>
T read_field(MessageReader& message) {
  T value{};
  message.field(value);
  return value;
}

}  // namespace

void write_settings(MessageWriter& message, const DrafterSettings& settings) {
  each_field(message, settings);
  const SpeculativeOptions& options = settings.speculation;
  each_key(message, options);
  message.field(options.speculative_model.string());
  message.field(options.speculative_token_map.string());
  message.field(options.tree.choices.size());
  for (const std::vector<int>& path : options.tree.choices) message.field(path);
}

DrafterSettings read_settings(MessageReader& message) {
  DrafterSettings settings;
  each_field(message, settings);
  SpeculativeOptions& options = settings.speculation;
  each_key(message, options);
  options.speculative_model = read_field<std::string>(message);
  options.speculative_token_map = read_field<std::string>(message);
  options.tree.choices.resize(read_field<size_t>(message));
  for (std::vector<int>& path : options.tree.choices) message.field(path);
  return settings;
}

void write_order(MessageWriter& message, const DraftOrder& order) {
  each_field(message, order);
  each_number(message, order.sampling);
  message.field(order.sampling.logit_bias.size());
  for (const auto& [token, bias] : order.sampling.logit_bias) {
    message.field(token);
    message.field(bias);
  }
}

DraftOrder read_order(MessageReader& message) {
  DraftOrder order;
  each_field(message, order);
  each_number(message, order.sampling);
  order.sampling.logit_bias.resize(read_field<size_t>(message));
  for (auto& [token, bias] : order.sampling.logit_bias) {
    message.field(token);
    message.field(bias);
  }
  return order;
}

void write_tree(MessageWriter& message, const TokenTree& tree) {
  const std::span<const Proposal> proposals = tree.proposals();
  message.field(std::vector<Proposal>(proposals.begin(), proposals.end()));
  int distributions = 0;
  for (const Proposal& proposal : proposals) {
    message.field(tree.token(proposal.child));
    message.field(tree.probability(proposal.child));
    distributions = std::max(distributions, proposal.distribution + 1);
  }
  message.field(distributions);
  for (int i = 0; i < distributions; ++i) {
    message.field(tree.kind_at(i));
    message.field(tree.distribution_at(i).tokens);
    message.field(tree.distribution_at(i).probabilities);
  }
}

void read_tree(MessageReader& message, TokenTree& tree) {
  const auto proposals = read_field<std::vector<Proposal>>(message);
  struct Child {
    TokenId token = 0;
    double probability = 0;
  };
  std::vector<Child> children(proposals.size());
  for (Child& child : children) {
    message.field(child.token);
    message.field(child.probability);
  }
  struct Drawn {
    ChildrenKind kind = ChildrenKind::kChosen;
    Distribution distribution = {};
    bool is_used = false;
  };
  std::vector<Drawn> drawn(static_cast<size_t>(read_field<int>(message)));
  for (Drawn& from : drawn) {
    message.field(from.kind);
    message.field(from.distribution.tokens);
    message.field(from.distribution.probabilities);
  }
  for (size_t i = 0; i < proposals.size(); ++i) {
    const Proposal& proposal = proposals[i];
    if (proposal.distribution >= 0) {
      Drawn& from = drawn[static_cast<size_t>(proposal.distribution)];
      if (!from.is_used) tree.set_distribution(proposal.parent, from.distribution, from.kind);
      from.is_used = true;
    }
    const int child = tree.add(proposal.parent, children[i].token, children[i].probability);
    OUTRIDER_CHECK(child == proposal.child);
    if (tree.proposals().size() == i) tree.repeat(child);
  }
}

}  // namespace outrider
