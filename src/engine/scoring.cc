// SPDX-License-Identifier: Apache-2.0
#include "engine/scoring.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "engine/request_checks.h"
#include "sampling/log_probability.h"

namespace outrider {
namespace {

constexpr size_t kScoreChunk = 32;  // rows of logits held at once

}  // namespace

Result<std::vector<double>> score(EngineParts& parts, std::span<const TokenId> tokens) {
  OUTRIDER_RETURN_IF_ERROR(check_tokens(tokens, parts.vocab_size));
  if (std::ssize(tokens) > parts.options.context) {
    return input_error("the text has " + std::to_string(tokens.size()) + " tokens and the context holds " +
                       std::to_string(parts.options.context) + "; shorten it or raise --ctx");
  }
  OUTRIDER_TRY(const AdapterUse adapters, parts.adapters.use_of({}));
  KvSequence kv = parts.cache->open({}, adapters.scope_within(0));
  kv.set_adapters(adapters.scaled);
  ForwardBatch batch;
  std::vector<double> log_probabilities = {0.0};
  std::vector<int> path;
  const auto row_size = static_cast<size_t>(parts.target->config().vocab_size);
  for (size_t begin = 0; begin + 1 < tokens.size(); begin += kScoreChunk) {
    const auto chunk = tokens.subspan(begin, std::min(kScoreChunk, tokens.size() - 1 - begin));
    OUTRIDER_TRY(KvTransaction transaction, parts.cache->stage(kv, static_cast<int>(chunk.size())));
    batch.clear();
    append_chain(batch, kv, transaction, chunk, LogitsWanted::kAll);
    const std::span<const float> logits = parts.target->forward(batch, *parts.cache);
    for (size_t i = 0; i < chunk.size(); ++i) {
      const LogSoftmax distribution(logits.subspan(i * row_size, row_size));
      log_probabilities.push_back(distribution.of(tokens[begin + i + 1]));
    }
    path.resize(chunk.size());
    std::iota(path.begin(), path.end(), 0);
    transaction.commit(path, chunk);
  }
  return log_probabilities;
}

}  // namespace outrider
