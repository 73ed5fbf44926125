// SPDX-License-Identifier: Apache-2.0
// Token files and the order in which training reads them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "outrider/result.h"

namespace outrider::training {

// Share of the training windows per domain; the shares need not add up to 1.
using Mixture = std::map<std::string, double>;

// A token file and its share of the windows.
struct TokenSource {
  std::string name;
  std::filesystem::path path;
  double share = 0.0;
};

// One step's windows: `windows` rows of `length` + 1 token ids, row-major; the model sees the first `length`
// of a row and learns to predict the last `length`.
struct TokenBatch {
  int64_t windows = 0;
  int64_t length = 0;
  std::vector<int32_t> tokens;
};

struct DataOptions {
  std::vector<TokenSource> sources;
  std::vector<int64_t> context_lengths;  // tokens; each step draws one with probability ~ 1 / length
  int64_t batch_tokens = 4096;
  uint64_t seed = 1;
  int vocab_size = 0;
  int document_end = 0;  // id of the token that ends a document
};

// <directory>/<domain>.u16 for every domain of the mixture, its share multiplied by `factor`.
std::vector<TokenSource> domain_sources(const std::filesystem::path& directory, const Mixture& mixture,
                                        double factor = 1.0);

// Reads little-endian uint16 token ids; every id must be below `vocab_size`.
Result<std::vector<uint16_t>> read_token_file(const std::filesystem::path& path, int vocab_size);

// Windows drawn at random from the domains. A batch is a pure function of (seed, step), so a resumed run sees
// exactly the data that the interrupted one would have seen. Half of the windows start at the beginning of a
// document where one is near, because prompts do.
class TokenData {
 public:
  static Result<TokenData> open(DataOptions options);

  TokenBatch batch(int64_t step) const;

  // At most `max_windows` windows laid end to end over one source, the same in every call.
  std::vector<TokenBatch> evaluation_batches(const std::string& source, int64_t max_windows) const;

  const std::vector<TokenSource>& sources() const { return options_.sources; }
  int64_t total_tokens() const;

 private:
  struct Domain {
    std::string name;
    double cumulative_share = 0.0;  // sum of the shares up to this source
    std::vector<uint16_t> tokens;
  };
  TokenData(DataOptions options, std::vector<Domain> domains);
  const Domain& domain_at(double u) const;
  int64_t window_start(const Domain& domain, int64_t length, int64_t step, int64_t window) const;

  DataOptions options_;
  std::vector<Domain> domains_;
};

}  // namespace outrider::training
