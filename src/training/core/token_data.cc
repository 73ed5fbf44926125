// SPDX-License-Identifier: Apache-2.0
#include "training/core/token_data.h"

#include <algorithm>
#include <fstream>

#include "base/counter_rng.h"

namespace outrider::training {
namespace {

// Numbers the independent random choices of one step or window.
enum Choice : uint64_t { kLength = 0, kDomain = 1, kOffset = 2, kAlign = 3 };

double draw(uint64_t seed, int64_t step, int64_t window, Choice choice) {
  return random_uniform(
      {.seed = seed, .sample_index = static_cast<uint64_t>(window), .position = step, .index = choice});
}

}  // namespace

Result<std::vector<uint16_t>> read_token_file(const std::filesystem::path& path, int vocab_size) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  if (!in) {
    return io_error("cannot read " + path.string() + ": make it with tools/prepare_training_data.py");
  }
  const auto bytes = static_cast<int64_t>(in.tellg());
  if (bytes % 2 != 0) return input_error(path.string() + ": uint16 token ids expected, found an odd size");
  std::vector<uint16_t> tokens(static_cast<size_t>(bytes / 2));
  in.seekg(0);
  in.read(reinterpret_cast<char*>(tokens.data()), bytes);
  if (!in) return io_error("cannot read " + path.string() + " to its end");
  const auto highest = std::max_element(tokens.begin(), tokens.end());
  if (highest != tokens.end() && *highest >= vocab_size) {
    return input_error(path.string() + ": token " + std::to_string(*highest) +
                       " is outside the vocabulary of " + std::to_string(vocab_size) +
                       "; prepare the data with this model's tokenizer");
  }
  return tokens;
}

std::vector<TokenSource> domain_sources(const std::filesystem::path& directory, const Mixture& mixture,
                                        double factor) {
  std::vector<TokenSource> sources;
  for (const auto& [name, share] : mixture)
    sources.push_back({name, directory / (name + ".u16"), share * factor});
  return sources;
}

TokenData::TokenData(DataOptions options, std::vector<Domain> domains)
    : options_(std::move(options)), domains_(std::move(domains)) {}

Result<TokenData> TokenData::open(DataOptions options) {
  if (options.sources.empty()) return usage_error("the mixture names no domain");
  if (options.context_lengths.empty()) return usage_error("at least one context length is expected");
  const int64_t longest = *std::max_element(options.context_lengths.begin(), options.context_lengths.end());
  for (const int64_t length : options.context_lengths) {
    if (length < 2 || options.batch_tokens % length != 0) {
      return usage_error("--batch-tokens (" + std::to_string(options.batch_tokens) +
                         ") must be a multiple of every context length, found " + std::to_string(length));
    }
  }
  std::vector<Domain> domains;
  double total = 0.0;
  for (const TokenSource& source : options.sources) {
    if (!(source.share >= 0.0)) {
      return usage_error("the share of " + source.name + " in the mixture must not be negative");
    }
    if (source.share == 0.0) continue;
    OUTRIDER_TRY(auto tokens, read_token_file(source.path, options.vocab_size));
    if (static_cast<int64_t>(tokens.size()) <= longest) {
      return input_error(source.path.string() + ": more than " + std::to_string(longest) +
                         " tokens are expected, found " + std::to_string(tokens.size()));
    }
    total += source.share;
    domains.push_back({source.name, total, std::move(tokens)});
  }
  if (domains.empty()) return usage_error("every share of the mixture is zero");
  for (Domain& domain : domains) domain.cumulative_share /= total;
  return TokenData(std::move(options), std::move(domains));
}

const TokenData::Domain& TokenData::domain_at(double u) const {
  for (const Domain& domain : domains_) {
    if (u < domain.cumulative_share) return domain;
  }
  return domains_.back();
}

int64_t TokenData::window_start(const Domain& domain, int64_t length, int64_t step, int64_t window) const {
  const int64_t last_start = static_cast<int64_t>(domain.tokens.size()) - (length + 1);
  const double u = draw(options_.seed, step, window, kOffset);
  const auto start = static_cast<int64_t>(u * static_cast<double>(last_start + 1));
  if (draw(options_.seed, step, window, kAlign) < 0.5) {
    const auto from = domain.tokens.begin() + start;
    const auto to = from + std::min(2 * length, last_start - start);
    const auto end = std::find(from, to, static_cast<uint16_t>(options_.document_end));
    if (end != to) return end - domain.tokens.begin() + 1;
  }
  return start;
}

TokenBatch TokenData::batch(int64_t step) const {
  double total = 0.0;
  for (const int64_t length : options_.context_lengths) total += 1.0 / static_cast<double>(length);
  double u = draw(options_.seed, step, 0, kLength) * total;
  int64_t chosen = options_.context_lengths.back();
  for (const int64_t length : options_.context_lengths) {
    u -= 1.0 / static_cast<double>(length);
    if (u < 0.0) {
      chosen = length;
      break;
    }
  }
  TokenBatch batch{.windows = options_.batch_tokens / chosen, .length = chosen, .tokens = {}};
  batch.tokens.reserve(static_cast<size_t>(batch.windows * (chosen + 1)));
  for (int64_t window = 0; window < batch.windows; ++window) {
    const Domain& domain = domain_at(draw(options_.seed, step, window, kDomain));
    const auto from = domain.tokens.begin() + window_start(domain, chosen, step, window);
    batch.tokens.insert(batch.tokens.end(), from, from + chosen + 1);
  }
  return batch;
}

std::vector<TokenBatch> TokenData::evaluation_batches(const std::string& source, int64_t max_windows) const {
  const auto found =
      std::find_if(domains_.begin(), domains_.end(), [&](const Domain& d) { return d.name == source; });
  std::vector<TokenBatch> batches;
  if (found == domains_.end()) return batches;
  const int64_t length = options_.context_lengths.front();
  const int64_t per_batch = options_.batch_tokens / length;
  const int64_t available = (static_cast<int64_t>(found->tokens.size()) - 1) / length;
  const int64_t windows = std::min(max_windows, available);
  for (int64_t first = 0; first < windows; first += per_batch) {
    TokenBatch batch{.windows = std::min(per_batch, windows - first), .length = length, .tokens = {}};
    for (int64_t window = first; window < first + batch.windows; ++window) {
      const auto from = found->tokens.begin() + window * length;
      batch.tokens.insert(batch.tokens.end(), from, from + length + 1);
    }
    batches.push_back(std::move(batch));
  }
  return batches;
}

int64_t TokenData::total_tokens() const {
  int64_t total = 0;
  for (const Domain& domain : domains_) total += static_cast<int64_t>(domain.tokens.size());
  return total;
}

}  // namespace outrider::training
