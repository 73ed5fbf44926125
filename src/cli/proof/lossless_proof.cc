// SPDX-License-Identifier: Apache-2.0
#include "cli/proof/lossless_proof.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/counter_rng.h"
#include "cli/proof/uniformity.h"
#include "cli/reports/completion_json.h"
#include "cli/timed_completion.h"
#include "config/message_text.h"

namespace outrider {
namespace {

std::string shown(const std::optional<TokenId>& token) {
  return token ? fmt::format("{}", *token) : "the end";
}

Error difference_error(const Difference& difference) {
  return {ErrorKind::kInput,
          fmt::format("different: prompt {}, {}, {}: output token {} is {} plainly and {} here",
                      difference.prompt, difference.mode, difference.arrangement, difference.position + 1,
                      shown(difference.plain), shown(difference.other))};
}

Error places_error(const PlacesProof& places) {
  return {
      ErrorKind::kInput,
      fmt::format(
          "sampled output does not follow the target's distribution: over {} tokens it deviates by {:.2f}, "
          "expected at most {:.2f}",
          places.tokens, places.deviation, UniformSample::kMaxDeviation)};
}

nlohmann::ordered_json id_or_null(const std::optional<TokenId>& token) {
  if (token) return *token;
  return nullptr;
}

}  // namespace

std::optional<Difference> first_difference(std::span<const TokenId> plain, std::span<const TokenId> other) {
  const auto [p, o] = std::mismatch(plain.begin(), plain.end(), other.begin(), other.end());
  if (p == plain.end() && o == other.end()) return std::nullopt;
  Difference difference;
  difference.position = static_cast<size_t>(p - plain.begin());
  if (p != plain.end()) difference.plain = *p;
  if (o != other.end()) difference.other = *o;
  return difference;
}

LosslessProver::LosslessProver(Engine& engine, std::vector<std::string> prompts,
                               std::function<void()> advance)
    : engine_(engine), prompts_(std::move(prompts)), advance_(std::move(advance)) {
  proof_.prompts = std::ssize(prompts_);
}

Status LosslessProver::run(const Mode& mode, std::vector<Request> requests) {
  proof_.modes.push_back(mode.name);
  OUTRIDER_TRY(const std::vector<Completion> plain, one_at_a_time(requests, false));
  OUTRIDER_TRY(const std::vector<Completion> speculative, one_at_a_time(requests, true));
  compare(mode, "one at a time", plain, speculative);
  OUTRIDER_TRY(const std::vector<Completion> plain_batch, together(requests, false));
  compare(mode, "plain, together", plain, plain_batch);
  OUTRIDER_TRY(const std::vector<Completion> batch, together(requests, true));
  compare(mode, "together", plain, batch);
  return {};
}

Status LosslessProver::run_by_distribution(std::vector<Request> requests) {
  proof_.modes.push_back("sampled, by distribution");
  UniformSample places;
  engine_.set_trace_sink([&](const StepTrace& trace) {
    for (size_t i = 0; i < trace.tokens.size(); ++i) {
      const double within = random_uniform({.seed = static_cast<uint64_t>(places.count())});
      places.add(trace.likelier[i] + within * trace.probabilities[i]);
    }
  });
  for (Request& request : requests) request.ignore_eos = true;
  auto alone = one_at_a_time(requests, true);
  auto batch = together(requests, true);
  engine_.set_trace_sink(nullptr);
  for (auto* completions : {&alone, &batch}) {
    if (!completions->ok()) return completions->error();
    for (const Completion& completion : **completions) count(completion);
  }
  proof_.places = {places.count(), places.deviation()};
  return {};
}

void LosslessProver::count(const Completion& completion) {
  proof_.tokens += std::ssize(completion.tokens);
  proof_.drafted += completion.speculation.drafted;
  proof_.accepted += completion.speculation.accepted;
}

Result<std::vector<Completion>> LosslessProver::one_at_a_time(std::vector<Request>& requests,
                                                              bool speculate) {
  std::vector<Completion> completions;
  for (size_t i = 0; i < requests.size(); ++i) {
    requests[i].speculation.enabled = speculate;
    requests[i].speculation.is_auto = false;
    auto completion = engine_.generate(requests[i]);
    if (!completion.ok()) {
      return Error{completion.error().kind,
                   fmt::format("prompt {}: {}", prompts_[i], completion.error().message)};
    }
    completions.push_back(std::move(completion).value());
    advance_();
  }
  return completions;
}

Result<std::vector<Completion>> LosslessProver::together(std::vector<Request>& requests, bool speculate) {
  for (Request& request : requests) {
    request.speculation.enabled = speculate;
    request.speculation.is_auto.reset();
  }
  OUTRIDER_TRY(std::vector<Completion> completions, generate_together(engine_, requests));
  for (size_t i = 0; i < requests.size(); ++i) advance_();
  return completions;
}

void LosslessProver::compare(const Mode& mode, std::string_view arrangement,
                             const std::vector<Completion>& plain, const std::vector<Completion>& other) {
  for (size_t i = 0; i < plain.size(); ++i) {
    count(other[i]);
    if (proof_.difference) continue;
    proof_.difference = first_difference(plain[i].tokens, other[i].tokens);
    if (!proof_.difference) continue;
    proof_.difference->prompt = prompts_[i];
    proof_.difference->mode = mode.name;
    proof_.difference->arrangement = arrangement;
  }
}

Status verdict(const Proof& proof) {
  if (proof.difference) return difference_error(*proof.difference);
  if (proof.places && proof.places->deviation > UniformSample::kMaxDeviation)
    return places_error(*proof.places);
  if (proof.drafted == 0) {
    return input_error(
        fmt::format("nothing was drafted for {} prompts, so the comparison proves nothing: expected "
                    "drafted tokens; raise --max-tokens or give other prompts",
                    proof.prompts));
  }
  return {};
}

std::string proof_text(const Proof& proof, const EngineInfo& info, int max_batch) {
  const std::vector<std::string_view> modes(proof.modes.begin(), proof.modes.end());
  return fmt::format(
      "identical: {} prompts, {} tokens, {}, one at a time and up to {} together; {}, {} of {} "
      "drafted tokens accepted\n",
      proof.prompts, proof.tokens, joined(modes), max_batch, snake_name(info.drafter), proof.accepted,
      proof.drafted);
}

nlohmann::ordered_json proof_json(const Proof& proof, const EngineInfo& info) {
  nlohmann::ordered_json json;
  json["identical"] = !proof.difference.has_value();
  json["model"] = info.model_path;
  json["method"] = snake_name(info.drafter);
  json["device"] = info.device;
  json["kernels"] = info.kernels;
  json["prompts"] = proof.prompts;
  json["tokens"] = proof.tokens;
  json["drafted"] = proof.drafted;
  json["accepted"] = proof.accepted;
  json["modes"] = proof.modes;
  json["places"] = nullptr;
  if (proof.places) {
    json["places"] = {{"tokens", proof.places->tokens},
                      {"deviation", proof.places->deviation},
                      {"limit", UniformSample::kMaxDeviation}};
  }
  json["difference"] = nullptr;
  if (proof.difference) {
    const Difference& difference = *proof.difference;
    json["difference"] = {{"prompt", difference.prompt},           {"mode", difference.mode},
                          {"arrangement", difference.arrangement}, {"position", difference.position},
                          {"plain", id_or_null(difference.plain)}, {"other", id_or_null(difference.other)}};
  }
  return json;
}

}  // namespace outrider
