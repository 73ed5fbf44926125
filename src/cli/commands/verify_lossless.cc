// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/counter_rng.h"
#include "cli/commands/commands.h"
#include "cli/commands/compare_kernels.h"
#include "cli/commands/verified_requests.h"
#include "cli/prompt_set.h"
#include "cli/reports/completion_json.h"
#include "cli/terminal.h"
#include "cli/timed_completion.h"
#include "cli/uniformity.h"
#include "config/message_text.h"
#include "open/parts.h"

namespace outrider {
namespace {

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
  int64_t tokens = 0;  // compared tokens of speculative output
  int64_t drafted = 0;
  int64_t accepted = 0;
  std::vector<std::string> modes;
  std::optional<Difference> difference;
  std::optional<PlacesProof> places;  // only under rules that keep the distribution and not the text
};

std::optional<Difference> first_difference(const std::vector<TokenId>& plain,
                                           const std::vector<TokenId>& other) {
  const auto [p, o] = std::mismatch(plain.begin(), plain.end(), other.begin(), other.end());
  if (p == plain.end() && o == other.end()) return std::nullopt;
  Difference difference;
  difference.position = static_cast<size_t>(p - plain.begin());
  if (p != plain.end()) difference.plain = *p;
  if (o != other.end()) difference.other = *o;
  return difference;
}

class Verifier {
 public:
  Verifier(Engine& engine, const std::vector<PromptRecord>& prompts, ProgressBar& progress)
      : engine_(engine), prompts_(prompts), progress_(progress) {}

  // All outputs must equal the plain output of one prompt at a time. Single prompts draft in every step,
  // which proves most; together, as the engine's policy decides.
  Status run(const Mode& mode, std::vector<Request> requests) {
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

  // Sampled tokens must follow the target's distribution, whatever was accepted before them: the place of
  // each in the order of probabilities, as the mass before it, is uniform. Outputs do not end early, because
  // a token that ends them would be missed more often than others.
  Status run_by_distribution(std::vector<Request> requests) {
    proof_.modes.push_back("sampled, by distribution");
    UniformSample places;
    engine_.set_trace_sink([&](const StepTrace& trace) {
      for (size_t i = 0; i < trace.tokens.size(); ++i) {
        const double within = random_uniform({.seed = static_cast<uint64_t>(places.count())});
        places.add(trace.likelier[i] + within * trace.probabilities[i]);
      }
    });
    for (Request& request : requests) request.ignore_eos = true;
    OUTRIDER_TRY(const std::vector<Completion> alone, one_at_a_time(requests, true));
    OUTRIDER_TRY(const std::vector<Completion> batch, together(requests, true));
    engine_.set_trace_sink(nullptr);
    for (const auto& completions : {alone, batch}) {
      for (const Completion& completion : completions) count(completion);
    }
    proof_.places = {places.count(), places.deviation()};
    return {};
  }

  const Proof& proof() const { return proof_; }

 private:
  void count(const Completion& completion) {
    proof_.tokens += static_cast<int64_t>(completion.tokens.size());
    proof_.drafted += completion.speculation.drafted;
    proof_.accepted += completion.speculation.accepted;
  }

  Result<std::vector<Completion>> one_at_a_time(std::vector<Request>& requests, bool speculate) {
    std::vector<Completion> completions;
    for (size_t i = 0; i < requests.size(); ++i) {
      requests[i].speculation.enabled = speculate;
      requests[i].speculation.is_auto = false;
      auto completion = engine_.generate(requests[i]);
      if (!completion.ok()) {
        return Error{completion.error().kind,
                     fmt::format("prompt {}: {}", prompts_[i].id, completion.error().message)};
      }
      completions.push_back(std::move(completion).value());
      progress_.advance();
    }
    return completions;
  }

  Result<std::vector<Completion>> together(std::vector<Request>& requests, bool speculate) {
    for (Request& request : requests) {
      request.speculation.enabled = speculate;
      request.speculation.is_auto.reset();
    }
    OUTRIDER_TRY(std::vector<Completion> completions, generate_together(engine_, requests));
    for (size_t i = 0; i < requests.size(); ++i) progress_.advance();
    return completions;
  }

  void compare(const Mode& mode, std::string_view arrangement, const std::vector<Completion>& plain,
               const std::vector<Completion>& other) {
    for (size_t i = 0; i < plain.size(); ++i) {
      count(other[i]);
      if (proof_.difference) continue;
      proof_.difference = first_difference(plain[i].tokens, other[i].tokens);
      if (!proof_.difference) continue;
      proof_.difference->prompt = prompts_[i].id;
      proof_.difference->mode = mode.name;
      proof_.difference->arrangement = arrangement;
    }
  }

  Engine& engine_;
  const std::vector<PromptRecord>& prompts_;
  ProgressBar& progress_;
  Proof proof_;
};

std::string shown(const std::optional<TokenId>& token) {
  return token ? fmt::format("{}", *token) : "the end";
}

Error places_error(const PlacesProof& places) {
  return {
      ErrorKind::kInput,
      fmt::format(
          "sampled output does not follow the target's distribution: over {} tokens it deviates by {:.2f}, "
          "expected at most {:.2f}",
          places.tokens, places.deviation, UniformSample::kMaxDeviation)};
}

Error difference_error(const Difference& difference) {
  return {ErrorKind::kInput,
          fmt::format("different: prompt {}, {}, {}: output token {} is {} plainly and {} here",
                      difference.prompt, difference.mode, difference.arrangement, difference.position + 1,
                      shown(difference.plain), shown(difference.other))};
}

nlohmann::ordered_json id_or_null(const std::optional<TokenId>& token) {
  if (token) return *token;
  return nullptr;
}

nlohmann::ordered_json proof_json(const Proof& proof, size_t prompts, const EngineInfo& info) {
  nlohmann::ordered_json json;
  json["identical"] = !proof.difference.has_value();
  json["model"] = info.model_path;
  json["method"] = snake_name(info.drafter);
  json["device"] = info.device;
  json["kernels"] = info.kernels;
  json["prompts"] = prompts;
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

Result<Proof> prove(const Settings& settings, Engine& engine, const PreparedPrompts& prepared) {
  const std::vector<Mode> modes = modes_for(settings);
  const SamplingParams& sampling = settings.request.sampling;
  const bool by_distribution =
      sampling.temperature > 0 && compares_distributions(acceptance_rule(settings.engine));
  const size_t rounds = modes.size() * 4 + (by_distribution ? 2 : 0);
  ProgressBar progress("verify", static_cast<int64_t>(rounds * prepared.records.size()));
  Verifier verifier(engine, prepared.records, progress);
  for (const Mode& mode : modes)
    OUTRIDER_RETURN_IF_ERROR(verifier.run(mode, requests_for(settings, prepared, mode.sampling)));
  if (by_distribution)
    OUTRIDER_RETURN_IF_ERROR(verifier.run_by_distribution(requests_for(settings, prepared, sampling)));
  return verifier.proof();
}

}  // namespace

Status run_verify_lossless(const Settings& settings) {
  if (!is_lossless(acceptance_rule(settings.engine))) {
    return usage_error(
        "verify-lossless expects acceptance coupled, rejection or block, found a lossy rule; leave it out");
  }
  if (settings.verify.compares_kernels) return compare_kernels(settings);
  OUTRIDER_TRY(std::vector<PromptRecord> records, load_prompts(settings));
  OUTRIDER_TRY(const Names names, names_of(settings, Unasked::kAuto));
  if (names.options.speculation.decoding_type == Method::kNone)
    return usage_error(
        "verify-lossless compares speculative output: expected a method in --speculative, found none");
  OUTRIDER_TRY(const std::unique_ptr<Engine> engine, open_engine(names));
  OUTRIDER_TRY(const PreparedPrompts prepared, prepare_prompts(std::move(records), *engine, settings));
  const std::vector<PromptRecord>& prompts = prepared.records;

  OUTRIDER_TRY(const Proof proof, prove(settings, *engine, prepared));
  if (settings.json) write_output(json_line(proof_json(proof, prompts.size(), engine->info())));
  if (proof.difference) return difference_error(*proof.difference);
  if (proof.places && proof.places->deviation > UniformSample::kMaxDeviation)
    return places_error(*proof.places);
  if (proof.drafted == 0) {
    return input_error(
        fmt::format("nothing was drafted for {} prompts, so the comparison proves nothing: expected "
                    "drafted tokens; raise --max-tokens or give other prompts",
                    prompts.size()));
  }
  if (!settings.json) {
    const std::vector<std::string_view> modes(proof.modes.begin(), proof.modes.end());
    write_output(
        fmt::format("identical: {} prompts, {} tokens, {}, one at a time and up to {} together; {}, {} of {} "
                    "drafted tokens accepted\n",
                    prompts.size(), proof.tokens, joined(modes), names.options.max_batch,
                    snake_name(engine->info().drafter), proof.accepted, proof.drafted));
  }
  return {};
}

}  // namespace outrider
