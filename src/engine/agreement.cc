// SPDX-License-Identifier: Apache-2.0
#include "engine/agreement.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sampling/distribution.h"
#include "sampling/logit_scan.h"
#include "sampling/target_law.h"

namespace outrider {
namespace {

constexpr size_t kChunk = 16;

// What the drafter would draw the next token from.
class DrafterLaws {
 public:
  explicit DrafterLaws(Drafter& drafter) : drafter_(drafter) { sampling_.temperature = 1.0; }

  const TokenTree& after(uint64_t sequence, std::span<const TokenId> tokens, int64_t prompt_length) {
    tree_.reset(tokens.back());
    const DraftRequest request{.sequence = sequence,
                               .tokens = tokens,
                               .prompt_length = static_cast<int>(prompt_length),
                               .max_depth = 1,
                               .max_nodes = 1,
                               .sampling = &sampling_,
                               .acceptance = AcceptanceRule::kRejection};
    if (!drafter_.draft({&request, 1}, {&tree_, 1}).ok()) tree_.reset(tokens.back());
    return tree_;
  }

 private:
  Drafter& drafter_;
  SamplingParams sampling_;
  TokenTree tree_;
};

double divergence(const Distribution& p, const Distribution& q) {
  constexpr double kFloor = 1e-30;  // what the draft rules out altogether
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

// 0: the likeliest.
size_t rank(const Distribution& law, TokenId token) {
  const double own = probability(law, token);
  size_t ahead = 0;
  for (size_t i = 0; i < law.tokens.size(); ++i) {
    const double other = law.probabilities[i];
    ahead += other > own || (other == own && law.tokens[i] < token) ? 1 : 0;
  }
  return ahead;
}

struct Sums {
  Agreement total;
  int64_t laws = 0;
  double early = 0.0, late = 0.0;
  int64_t early_places = 0;

  void add(const Distribution& p, TokenId likeliest, const TokenTree& drafted, bool is_early) {
    ++total.places;
    const Distribution& q = drafted.law(0);
    if (q.empty()) {
      const bool hit = drafted.drafted() > 0 && drafted.token(1) == likeliest;
      for (double& covered : total.coverage) covered += hit ? 1.0 : 0.0;
      return;
    }
    ++laws;
    const double tv = variation(p, q);
    total.divergence += divergence(p, q);
    total.variation += tv;
    (is_early ? early : late) += tv;
    early_places += is_early ? 1 : 0;
    for (size_t k = rank(q, likeliest); k < Agreement::kRanks; ++k) total.coverage[k] += 1.0;
    add_sampled_coverage(p, q);
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
    result.has_laws = laws > 0;
    result.divergence = over(total.divergence, laws);
    result.variation = over(total.variation, laws);
    result.early_variation = over(early, early_places);
    result.late_variation = over(late, laws - early_places);
    for (double& covered : result.coverage) covered = over(covered, total.places);
    for (double& covered : result.sampled_coverage) covered = over(covered, laws);
    return result;
  }
};

Status add_text(EngineParts& parts, const GivenText& text, uint64_t sequence, Sums& sums) {
  const std::span<const TokenId> tokens = text.tokens;
  if (static_cast<int64_t>(tokens.size()) > parts.options.context)
    return input_error("the text is longer than the context; raise --ctx");
  SamplingParams sampling;
  sampling.temperature = 1.0;
  LawBuilder laws;
  const TokenHistory history;
  DrafterLaws drafter(*parts.drafter);
  parts.drafter->begin(sequence, tokens.first(static_cast<size_t>(text.prompt_length)));
  const int64_t middle = (text.prompt_length + static_cast<int64_t>(tokens.size())) / 2;
  KvSequence kv = parts.cache->open({});
  ForwardBatch batch;
  std::vector<int> path;
  for (size_t begin = 0; begin + 1 < tokens.size(); begin += kChunk) {
    const auto chunk = tokens.subspan(begin, std::min(kChunk, tokens.size() - 1 - begin));
    OUTRIDER_TRY(KvTransaction transaction, parts.cache->stage(kv, static_cast<int>(chunk.size())));
    batch.clear();
    append_chain(batch, kv, transaction, chunk, LogitsWanted::kAll);
    const std::span<const float> logits = parts.target->forward(batch, *parts.cache);
    const auto row_size = static_cast<size_t>(parts.target->config().vocab_size);
    for (size_t i = 0; i < chunk.size(); ++i) {
      const auto known = static_cast<int64_t>(begin + i) + 1;
      if (known < text.prompt_length) continue;
      const auto row = logits.subspan(i * row_size, static_cast<size_t>(parts.vocab_size));
      const auto so_far = tokens.first(static_cast<size_t>(known));
      sums.add(laws.build(row, sampling, history), largest_logit(row).token,
               drafter.after(sequence, so_far, text.prompt_length), known < middle);
    }
    path.resize(chunk.size());
    std::iota(path.begin(), path.end(), 0);
    transaction.commit(path, chunk);
  }
  parts.drafter->end(sequence);
  return {};
}

}  // namespace

Result<Agreement> measure_agreement(EngineParts& parts, std::span<const GivenText> texts) {
  Sums sums;
  for (size_t i = 0; i < texts.size(); ++i) OUTRIDER_RETURN_IF_ERROR(add_text(parts, texts[i], i + 1, sums));
  return sums.mean();
}

}  // namespace outrider
