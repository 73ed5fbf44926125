// SPDX-License-Identifier: Apache-2.0
#include "engine/agreement.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "drafters/target_access.h"
#include "sampling/distribution.h"
#include "sampling/logit_scan.h"
#include "sampling/logits_processor.h"
#include "speculation/acceptance/coupled_agreement.h"

namespace outrider {
namespace {

constexpr size_t kChunk = 16;

// The states that the drafter is given of each place: the place's own, or states of an earlier place.
enum class StatesGiven { kOwn, kOther };
constexpr int kOtherPlace = 7;

// Reads one text with the target and the drafter.
class Reader {
 public:
  Reader(EngineParts& parts, uint64_t sequence, const GivenText& text, StatesGiven states)
      : parts_(parts),
        text_(text),
        states_(states),
        sequence_(sequence),
        max_nodes_(static_cast<int>(std::max<size_t>(1, parts.drafter->traits().sources.size()))),
        kv_(parts.cache->open({})) {
    sampling_.temperature = 1.0;
    parts.drafter->begin(sequence, std::span(text.tokens).first(prompt_length()));
  }
  ~Reader() { parts_.drafter->end(sequence_); }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  size_t prompt_length() const { return static_cast<size_t>(std::max<int64_t>(1, text_.prompt_length)); }

  // Reads the next tokens of the text; returns the target's logits after the last of them.
  Result<std::span<const float>> read(std::span<const TokenId> tokens) {
    std::span<const float> logits;
    while (!tokens.empty()) {
      const auto chunk = tokens.first(std::min(kChunk, tokens.size()));
      OUTRIDER_TRY(KvTransaction transaction, parts_.cache->stage(kv_, static_cast<int>(chunk.size())));
      batch_.clear();
      append_chain(batch_, kv_, transaction, chunk, LogitsWanted::kLast);
      logits = parts_.target->forward(batch_, *parts_.cache);
      path_.resize(chunk.size());
      std::iota(path_.begin(), path_.end(), 0);
      transaction.commit(path_, chunk);
      hand_over_features();
      tokens = tokens.subspan(chunk.size());
    }
    return logits.first(std::min(logits.size(), static_cast<size_t>(parts_.vocab_size)));
  }

  // The drafter's tree of one level after the first `known` tokens, of which all but the last are read.
  // Drafters that share a tree propose one node each.
  Result<const TokenTree*> draft(size_t known) {
    const auto tokens = std::span(text_.tokens).first(known);
    tree_.reset(tokens.back());
    OUTRIDER_TRY(KvTransaction staged, parts_.cache->stage(kv_, 1 + max_nodes_));
    const TargetAccess target{.model = parts_.target.get(),
                              .cache = parts_.cache.get(),
                              .sequence = &kv_,
                              .staged = &staged,
                              .exits = &exits_};
    const DraftRequest request{.sequence = sequence_,
                               .tokens = tokens,
                               .prompt_length = static_cast<int>(prompt_length()),
                               .max_draft_len = 1,
                               .max_nodes = max_nodes_,
                               .sampling = &sampling_,
                               .acceptance = AcceptanceRule::kRejection,
                               .target = parts_.drafter->traits().uses_target ? &target : nullptr};
    if (!parts_.drafter->draft({&request, 1}, {&tree_, 1}).ok()) tree_.reset(tokens.back());
    return &tree_;
  }

 private:
  // Hands over the features of the tokens read last.
  void hand_over_features() {
    if (parts_.drafter->traits().features.count() == 0) return;
    const auto length = static_cast<size_t>(kv_.length());
    const int first = kv_.length() - static_cast<int>(path_.size());
    const int64_t size = parts_.target->feature_size();
    const std::span<const float> features = parts_.target->features();
    seen_.insert(seen_.end(), features.begin(), features.begin() + std::ssize(path_) * size);
    const int back = states_ == StatesGiven::kOwn ? 0 : kOtherPlace;
    for (int& row : path_) row = std::max(0, first + row - back);
    const CommittedFeatures committed{.sequence = sequence_,
                                      .tokens = std::span(text_.tokens).first(length + 1),
                                      .first = first,
                                      .rows = path_,
                                      .features = seen_.data(),
                                      .size = size};
    parts_.drafter->absorb({&committed, 1});
  }

  EngineParts& parts_;
  const GivenText& text_;
  StatesGiven states_;
  uint64_t sequence_;
  int max_nodes_;
  KvSequence kv_;
  SamplingParams sampling_;
  TokenTree tree_;
  ExitStates exits_;
  ForwardBatch batch_;
  std::vector<int> path_;
  std::vector<float> seen_;  // features of all places so far
};

// The distribution that the root's children were drawn from, the last one if there are several; empty if the
// children were chosen.
const Distribution& distribution_of_root(const TokenTree& tree) {
  int distribution = -1;
  for (const Proposal& proposal : tree.proposals()) {
    if (proposal.parent == 0 && proposal.distribution >= 0) distribution = proposal.distribution;
  }
  return distribution < 0 ? tree.distribution(0) : tree.distribution_at(distribution);
}

bool proposes(const TokenTree& tree, TokenId token) {
  for (int node = 1; node < tree.size(); ++node) {
    if (tree.parent(node) == 0 && tree.token(node) == token) return true;
  }
  return false;
}

double divergence(const Distribution& p, const Distribution& q) {
  constexpr double kFloor = 1e-30;  // stands for a probability of 0 in q
  double sum = 0.0;
  for (size_t i = 0; i < p.tokens.size(); ++i) {
    sum += p.probabilities[i] * std::log(p.probabilities[i] / std::max(kFloor, probability(q, p.tokens[i])));
  }
  return std::max(0.0, sum);
}

double variation(const Distribution& p, const Distribution& q) {
  double common = 0.0;
  for (size_t i = 0; i < p.tokens.size(); ++i)
    common += std::min(p.probabilities[i], probability(q, p.tokens[i]));
  return std::clamp(1.0 - common, 0.0, 1.0);
}

// The rank of a token, 0 for the likeliest.
size_t rank(const Distribution& distribution, TokenId token) {
  const double own = probability(distribution, token);
  size_t ahead = 0;
  for (size_t i = 0; i < distribution.tokens.size(); ++i) {
    const double other = distribution.probabilities[i];
    ahead += other > own || (other == own && distribution.tokens[i] < token) ? 1 : 0;
  }
  return ahead;
}

struct Sums {
  Agreement total;
  int64_t distributions = 0;
  double early = 0.0, late = 0.0;
  int64_t early_places = 0;

  void add(const Distribution& p, TokenId likeliest, const TokenTree& drafted, bool is_early) {
    ++total.places;
    const Distribution& q = distribution_of_root(drafted);
    if (q.empty()) {
      const bool hit = proposes(drafted, likeliest);
      for (double& covered : total.coverage) covered += hit ? 1.0 : 0.0;
      return;
    }
    ++distributions;
    const double tv = variation(p, q);
    total.divergence += divergence(p, q);
    total.variation += tv;
    (is_early ? early : late) += tv;
    early_places += is_early ? 1 : 0;
    for (size_t k = rank(q, likeliest); k < Agreement::kRanks; ++k) total.coverage[k] += 1.0;
    add_sampled_coverage(p, q);
    for (size_t i = 0; i < Agreement::kTemperatures.size(); ++i)
      total.coupled[i] += coupled_agreement(p, q, Agreement::kTemperatures[i]);
  }

  void add_sampled_coverage(const Distribution& p, const Distribution& q) {
    std::vector<size_t> order(q.tokens.size());
    std::iota(order.begin(), order.end(), size_t{0});
    const size_t first = std::min(order.size(), Agreement::kRanks);
    std::partial_sort(order.begin(), order.begin() + static_cast<ptrdiff_t>(first), order.end(),
                      [&](size_t a, size_t b) { return q.probabilities[a] > q.probabilities[b]; });
    double mass = 0.0;
    for (size_t k = 0; k < Agreement::kRanks; ++k) {
      if (k < first) mass += probability(p, q.tokens[order[k]]);
      total.sampled_coverage[k] += mass;
    }
  }

  Agreement mean() const {
    Agreement result = total;
    const auto over = [](double sum, int64_t count) {
      return count == 0 ? 0.0 : sum / static_cast<double>(count);
    };
    result.has_distributions = distributions > 0;
    result.divergence = over(total.divergence, distributions);
    result.variation = over(total.variation, distributions);
    result.early_variation = over(early, early_places);
    result.late_variation = over(late, distributions - early_places);
    for (double& covered : result.coverage) covered = over(covered, total.places);
    for (double& covered : result.sampled_coverage) covered = over(covered, distributions);
    for (double& accepted : result.coupled) accepted = over(accepted, distributions);
    return result;
  }
};

Status add_text(EngineParts& parts, const GivenText& text, uint64_t sequence, StatesGiven states,
                Sums& sums) {
  const std::span<const TokenId> tokens = text.tokens;
  if (static_cast<int64_t>(tokens.size()) > parts.options.context)
    return input_error("the text is longer than the context; raise --ctx");
  SamplingParams sampling;
  sampling.temperature = 1.0;
  LogitsProcessor distributions;
  const TokenHistory history;
  Reader reader(parts, sequence, text, states);
  OUTRIDER_RETURN_IF_ERROR(reader.read(tokens.first(reader.prompt_length() - 1)));
  const size_t middle = (reader.prompt_length() + tokens.size()) / 2;
  for (size_t known = reader.prompt_length(); known < tokens.size(); ++known) {
    OUTRIDER_TRY(const TokenTree* drafted, reader.draft(known));
    OUTRIDER_TRY(const std::span<const float> logits, reader.read(tokens.subspan(known - 1, 1)));
    sums.add(distributions.build(logits, sampling, history), largest_logit(logits).token, *drafted,
             known < middle);
  }
  return {};
}

// Sequences are numbered from `first` on.
Result<Agreement> measure(EngineParts& parts, std::span<const GivenText> texts, StatesGiven states,
                          uint64_t first) {
  Sums sums;
  for (const GivenText& text : texts) OUTRIDER_RETURN_IF_ERROR(add_text(parts, text, first++, states, sums));
  return sums.mean();
}

}  // namespace

Result<Agreement> measure_own_agreement(EngineParts& parts, std::span<const GivenText> texts) {
  return measure(parts, texts, StatesGiven::kOwn, 1);
}

Result<Agreement> measure_agreement(EngineParts& parts, std::span<const GivenText> texts) {
  OUTRIDER_TRY(Agreement agreement, measure_own_agreement(parts, texts));
  if (parts.drafter->traits().features.count() > 0) {
    OUTRIDER_TRY(const Agreement other, measure(parts, texts, StatesGiven::kOther, 1 + texts.size()));
    agreement.coverage_with_other_states = other.coverage.front();
  }
  return agreement;
}

}  // namespace outrider
