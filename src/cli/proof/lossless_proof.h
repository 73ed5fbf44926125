// SPDX-License-Identifier: Apache-2.0
// The proof that drafts change no text: what is compared, what is found, and what is said of it.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/proof/verified_requests.h"
#include "outrider/engine.h"
#include "outrider/result.h"

namespace outrider {

struct Difference {
  std::string prompt;
  std::string mode;
  std::string arrangement;  // "one at a time", "together"
  size_t position = 0;      // in the output
  std::optional<TokenId> plain;
  std::optional<TokenId> other;
};

// The places of sampled tokens in the distributions that they should be drawn from.
struct PlacesProof {
  int64_t tokens = 0;
  double deviation = 0.0;  // UniformSample::deviation()
};

struct Proof {
  int64_t prompts = 0;
  int64_t tokens = 0;  // compared tokens of speculative output
  int64_t drafted = 0;
  int64_t accepted = 0;
  std::vector<std::string> modes;
  std::optional<Difference> difference;
  std::optional<PlacesProof> places;  // only under rules that keep the distribution and not the text
};

// Nothing if both are equal. An output that ends has no token there.
std::optional<Difference> first_difference(std::span<const TokenId> plain, std::span<const TokenId> other);

// Runs a request for each prompt in several ways on one engine, and counts and compares the outputs.
class LosslessProver {
 public:
  // `prompts` has the names of the prompts. `advance` is called after every output.
  LosslessProver(Engine& engine, std::vector<std::string> prompts, std::function<void()> advance);

  // All outputs must equal the plain output of one prompt at a time. Single prompts draft in every step,
  // which proves most; together, as the engine's policy decides. Errors: a request fails.
  Status run(const Mode& mode, std::vector<Request> requests);

  // Sampled tokens must follow the target's distribution, whatever was accepted before them: the place of
  // each in the order of probabilities, as the mass before it, is uniform. Outputs do not end early, because
  // a token that ends them would be missed more often than others. Errors: a request fails.
  Status run_by_distribution(std::vector<Request> requests);

  const Proof& proof() const { return proof_; }

 private:
  void count(const Completion& completion);
  Result<std::vector<Completion>> one_at_a_time(std::vector<Request>& requests, bool speculate);
  Result<std::vector<Completion>> together(std::vector<Request>& requests, bool speculate);
  void compare(const Mode& mode, std::string_view arrangement, const std::vector<Completion>& plain,
               const std::vector<Completion>& other);

  Engine& engine_;
  std::vector<std::string> prompts_;
  std::function<void()> advance_;
  Proof proof_;
};

// Ok if the proof holds. Errors: texts differ, sampled tokens do not follow the distribution, or nothing was
// drafted, so that nothing was proved.
Status verdict(const Proof& proof);

std::string proof_text(const Proof& proof, const EngineInfo& info, int max_batch);
nlohmann::ordered_json proof_json(const Proof& proof, const EngineInfo& info);

}  // namespace outrider
