// SPDX-License-Identifier: Apache-2.0
#include "cli/reports/doctor_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/repeated_timing.h"
#include "cli/reports/drafter_json.h"
#include "config/methods.h"

namespace outrider {
namespace {

constexpr double kWorthwhile = 1.03;
constexpr double kNeverAgrees = 0.02;
constexpr int64_t kFewPlaces = 32;         // too few places to call a drafter wrong
constexpr double kShareOfTraining = 0.75;  // other prompts explain no larger loss of agreement
constexpr double kGainOfRepair = 0.01;     // total variation; to a right head repairs do harm
constexpr double kGainOfStates = 1.1;      // the states that a head is trained on help more than this

double per_step(double ms, const ShapeResult& shape) {
  return shape.stats.steps == 0 ? 0.0 : ms / static_cast<double>(shape.stats.steps);
}

double nodes_per_step(const ShapeResult& shape) {
  return per_step(static_cast<double>(shape.stats.drafted), shape);
}

// The gain from which on the best draft temperature under the coupled rule is reported.
constexpr double kReportedGain = 1.02;

std::string temperature_text(const Agreement& agreement) {
  const auto at = [](double temperature) {
    return static_cast<size_t>(std::ranges::find(Agreement::kTemperatures, temperature) -
                               Agreement::kTemperatures.begin());
  };
  const double plain = agreement.coupled[at(1.0)];
  const size_t best =
      static_cast<size_t>(std::ranges::max_element(agreement.coupled) - agreement.coupled.begin());
  std::string text =
      fmt::format("when sampling    {:.1f}% of drafts pass the coupled rule, {:.1f}% the rejection rule",
                  100.0 * plain, 100.0 * (1.0 - agreement.variation));
  if (agreement.coupled[best] > kReportedGain * plain) {
    text += fmt::format(";\n                 {:.1f}% coupled with draft_temperature={}",
                        100.0 * agreement.coupled[best], Agreement::kTemperatures[best]);
  }
  return text + "\n";
}

// How often the draft's token of each rank is the target's likeliest one.
std::vector<double> rank_accuracies(const Agreement& agreement) {
  std::vector<double> shares;
  double before = 0.0;
  for (const double covered : agreement.coverage) {
    shares.push_back(std::round(1000.0 * (covered - before)) / 1000.0);
    before = covered;
  }
  return shares;
}

// The key that makes a static tree of this measurement; a drafter that is never right has no tree.
std::string measured_tree_text(const Agreement& agreement) {
  const std::vector<double> shares = rank_accuracies(agreement);
  if (shares.front() <= 0.0) return "";
  return fmt::format("static tree      tree_accuracies=[[{}]],max_draft_len=5,max_total_draft_tokens=16\n",
                     fmt::join(shares, ","));
}

std::string agreement_text(const Agreement& agreement) {
  const auto percent = [](double share) { return 100.0 * share; };
  if (!agreement.has_distributions) {
    return fmt::format(
        "agreement        over {} places: proposes the target's likeliest token at {:.1f}% of them\n"
        "                 (this drafter gives no probabilities to compare)\n",
        agreement.places, percent(agreement.coverage[0]));
  }
  return fmt::format(
             "agreement        over {} places at temperature 1: KL(target || draft) {:.3f} nats, total "
             "variation "
             "{:.3f}\n"
             "                 ({:.3f} in the first half of each text, {:.3f} in the second)\n"
             "top-k coverage   the target's likeliest token is among the draft's first 1..5 at {:.1f} {:.1f} "
             "{:.1f} "
             "{:.1f} "
             "{:.1f}%\n",
             agreement.places, agreement.divergence, agreement.variation, agreement.early_variation,
             agreement.late_variation, percent(agreement.coverage[0]), percent(agreement.coverage[1]),
             percent(agreement.coverage[2]), percent(agreement.coverage[3]), percent(agreement.coverage[4])) +
         measured_tree_text(agreement) + temperature_text(agreement);
}

// Only a head that fits the target is reported.
std::string head_text(const HeadSummary& head) {
  return fmt::format(
      "drafter          {}, {:.2f} M parameters; fits: hidden size {}, vocabulary {}, {}\n",
      method_name(head.method), static_cast<double>(head.parameters) / 1e6, head.hidden_size, head.vocab_size,
      head.target.empty() ? "names no target" : "trained for this target (fingerprint " + head.target + ")");
}

std::string vocabulary_text(const Diagnosis& diagnosis) {
  if (!diagnosis.vocabulary) return "vocabulary       fits\n";
  return fmt::format("vocabulary       {}; of the tokens of these answers the draft has {:.1f}%\n",
                     diagnosis.vocabulary->text(), 100.0 * diagnosis.share_of_text);
}

constexpr std::string_view kCauses =
    "  This drafter looks wrong rather than weak, and its speed was not measured. Likely causes:\n"
    "  - it was made for another model, or another fine-tune of it;\n"
    "  - its ids mean the same text, but it expects another chat template or a beginning-of-text token;\n"
    "  - its tapped layers, their order or the order of its inputs are not those that it was trained with;\n"
    "  - its d2t map belongs to another head;\n"
    "  - its weights are damaged, or lost too much to quantisation (outrider inspect shows their types);\n"
    "  - its RoPE parameters are wrong: then it agrees at the beginning of a text and less and less later "
    "on.\n\n";

std::string withheld(const Diagnosis& diagnosis) {
  double min = diagnosis.shapes.front().spread;
  for (const ShapeResult& shape : diagnosis.shapes) min = std::min(min, shape.spread);
  return fmt::format(
      "withheld: the machine is busy: timings of the same work differ by {:.0f}%, expected at most {:.0f}%; "
      "stop what else runs, and try again",
      100.0 * std::max(min, diagnosis.plain.spread), 100.0 * RepeatedTiming::kMaxSpread);
}

// The table columns that compare the shape with plain decoding.
std::string comparison_text(const Diagnosis& diagnosis, const ShapeResult& shape) {
  if (is_noisy(diagnosis, shape)) return fmt::format("{:>11} {:>9}", "noisy", "noisy");
  return fmt::format("{:>11.2f} {:>8.2f}x", break_even(diagnosis, shape), speed_up(diagnosis, shape));
}

}  // namespace

double speed_up(const Diagnosis& diagnosis, const ShapeResult& shape) {
  const double plain = diagnosis.plain.tokens_per_second();
  return plain > 0.0 ? shape.tokens_per_second() / plain : 0.0;
}

double break_even(const Diagnosis& diagnosis, const ShapeResult& shape) {
  const double plain = diagnosis.plain.ms_per_token();
  return plain > 0.0 ? per_step(shape.decode_ms, shape) / plain : 0.0;
}

double credible_speed_up(const Diagnosis& diagnosis, const ShapeResult& shape) {
  return std::min(speed_up(diagnosis, shape), shape.stats.acceptance_length());
}

bool is_noisy(const Diagnosis& diagnosis, const ShapeResult& shape) {
  return std::max(diagnosis.plain.spread, shape.spread) > RepeatedTiming::kMaxSpread;
}

const ShapeResult* best_shape(const Diagnosis& diagnosis) {
  const ShapeResult* best = nullptr;
  for (const ShapeResult& shape : diagnosis.shapes) {
    if (is_noisy(diagnosis, shape)) continue;
    if (best == nullptr || credible_speed_up(diagnosis, shape) > credible_speed_up(diagnosis, *best))
      best = &shape;
  }
  return best;
}

std::string miswiring(const Diagnosis& diagnosis) {
  const Agreement& agreement = diagnosis.agreement;
  // Drafters without a model are exempt, because they may find nothing in this text.
  if (!agreement.has_distributions || agreement.places < kFewPlaces) return {};
  const double agrees = agreement.coverage.front();
  if (agreement.coverage.back() < 5.0 * kNeverAgrees && agrees < kNeverAgrees)
    return "it never agrees with the target";
  const double trained = diagnosis.head ? diagnosis.head->agreement : 0.0;
  if (agrees < kShareOfTraining * trained) {
    return fmt::format(
        "it proposes the target's likeliest token at {:.1f}% of the places, and did so at {:.1f}% "
        "when it was trained",
        100.0 * agrees, 100.0 * trained);
  }
  if (diagnosis.target_rope_theta && diagnosis.variation_at_target_rope <= agreement.variation) {
    return fmt::format(
        "its rope_theta is {}; with the target's {} it agrees no less (total variation {:.3f} instead of "
        "{:.3f})",
        diagnosis.head->rope_theta, *diagnosis.target_rope_theta, diagnosis.variation_at_target_rope,
        agreement.variation);
  }
  if (diagnosis.repair && diagnosis.repair->variation_without - diagnosis.repair->variation > kGainOfRepair) {
    return fmt::format("with {} it agrees better (total variation {:.3f} instead of {:.3f})",
                       diagnosis.repair->what, diagnosis.repair->variation,
                       diagnosis.repair->variation_without);
  }
  const double blind = agreement.coverage_with_other_states.value_or(0.0);
  if (trained == 0.0 && agreement.coverage_with_other_states && agrees < kGainOfStates * blind) {
    return fmt::format(
        "it proposes the target's likeliest token at {:.1f}% of the places, and at {:.1f}% when it "
        "reads the target's states of other places",
        100.0 * agrees, 100.0 * blind);
  }
  return {};
}

std::string verdict_of(const Diagnosis& diagnosis) {
  if (const std::string wrong = miswiring(diagnosis); !wrong.empty()) return "wrong drafter: " + wrong;
  if (diagnosis.shapes.empty()) return "nothing was measured";
  const ShapeResult* best = best_shape(diagnosis);
  if (best == nullptr) return withheld(diagnosis);
  const double gain = credible_speed_up(diagnosis, *best);
  if (gain >= kWorthwhile) {
    return fmt::format("use it: {:.2f}x, tree of {:.1f} nodes: --speculative {},{}", gain,
                       nodes_per_step(*best), diagnosis.speculative, best->keys);
  }
  const double draft_share = best->stats.draft_ms / std::max(1e-9, best->decode_ms);
  constexpr double kMostly = 0.5;
  return fmt::format("do not use it here: {:.2f}x at best ({}); {}", gain, best->keys,
                     draft_share > kMostly ? "drafting takes most of the time: a smaller drafter would help"
                                           : "too few of its tokens are accepted for what a step costs");
}

namespace {

std::string shapes_text(const Diagnosis& diagnosis) {
  size_t width = 0;
  for (const ShapeResult& shape : diagnosis.shapes) width = std::max(width, shape.keys.size());
  std::string text = fmt::format("{:<{}} {:>6} {:>8} {:>9} {:>9} {:>11} {:>9}\n", "tree", width, "nodes",
                                 "length", "draft ms", "other ms", "break-even", "speed-up");
  for (const ShapeResult& shape : diagnosis.shapes) {
    text += fmt::format(
        "{:<{}} {:>6.1f} {:>8.2f} {:>9.3f} {:>9.3f} {}\n", shape.keys, width, nodes_per_step(shape),
        shape.stats.acceptance_length(), per_step(shape.stats.draft_ms, shape),
        per_step(shape.decode_ms - shape.stats.draft_ms, shape), comparison_text(diagnosis, shape));
  }
  return text +
         "\nlength: tokens per target pass, bonus token included; break-even: the length at which such steps "
         "are as\n"
         "fast as plain decoding; draft and other: milliseconds per step; noisy: repeated timings differ too "
         "much\n\n";
}

nlohmann::ordered_json shapes_json(const Diagnosis& diagnosis) {
  nlohmann::ordered_json shapes = nlohmann::ordered_json::array();
  for (const ShapeResult& shape : diagnosis.shapes) {
    shapes.push_back({{"keys", shape.keys},
                      {"nodes", nodes_per_step(shape)},
                      {"acceptance_length", shape.stats.acceptance_length()},
                      {"draft_ms", per_step(shape.stats.draft_ms, shape)},
                      {"other_ms", per_step(shape.decode_ms - shape.stats.draft_ms, shape)},
                      {"break_even", break_even(diagnosis, shape)},
                      {"speed_up", speed_up(diagnosis, shape)},
                      {"spread", shape.spread},
                      {"noisy", is_noisy(diagnosis, shape)}});
  }
  return shapes;
}

}  // namespace

std::string diagnosis_text(const Diagnosis& diagnosis) {
  std::string text =
      fmt::format("{}: {}, {} kernels, {} threads; {} drafts; {} prompts, temperature {}\n\n",
                  diagnosis.info.model_path, diagnosis.info.weights, diagnosis.info.kernels,
                  diagnosis.info.threads, diagnosis.method, diagnosis.prompts, diagnosis.temperature);
  for (const DrafterLine& line : diagnosis.drafters) text += text_of(line) + "\n";
  if (!diagnosis.drafters.empty()) text += "\n";
  text += diagnosis.head ? head_text(*diagnosis.head) : vocabulary_text(diagnosis);
  text += agreement_text(diagnosis.agreement);
  text += fmt::format("plain decoding   {:.3f} ms per token\n\n", diagnosis.plain.ms_per_token());
  if (!diagnosis.shapes.empty()) text += shapes_text(diagnosis);
  if (!miswiring(diagnosis).empty()) text += kCauses;
  return text + fmt::format("verdict          {}\n", verdict_of(diagnosis));
}

nlohmann::ordered_json diagnosis_json(const Diagnosis& diagnosis) {
  nlohmann::ordered_json json;
  json["model"] = diagnosis.info.model_path;
  json["method"] = diagnosis.method;
  if (diagnosis.head) {
    json["drafter"] = {{"kind", method_name(diagnosis.head->method)},
                       {"parameters", diagnosis.head->parameters},
                       {"hidden_size", diagnosis.head->hidden_size},
                       {"vocab_size", diagnosis.head->vocab_size},
                       {"trained_for_this_target", nullptr}};
    if (!diagnosis.head->target.empty()) json["drafter"]["trained_for_this_target"] = true;
  }
  json["drafters"] = drafters_json(diagnosis.drafters);
  if (diagnosis.vocabulary)
    json["vocabularies"] = vocabularies_json(diagnosis.vocabulary, diagnosis.share_of_text);
  json["kernels"] = diagnosis.info.kernels;
  json["threads"] = diagnosis.info.threads;
  json["prompts"] = diagnosis.prompts;
  json["temperature"] = diagnosis.temperature;
  const Agreement& agreement = diagnosis.agreement;
  json["agreement"] = {{"places", agreement.places}, {"top_k_coverage", agreement.coverage}};
  if (agreement.coverage_with_other_states)
    json["agreement"]["coverage_with_other_states"] = *agreement.coverage_with_other_states;
  if (agreement.has_distributions) {
    json["agreement"]["tree_accuracies"] = nlohmann::ordered_json::array({rank_accuracies(agreement)});
    json["agreement"]["sampled_top_k_coverage"] = agreement.sampled_coverage;
    json["agreement"]["coupled_acceptance"] = nlohmann::ordered_json::array();
    for (size_t i = 0; i < agreement.coupled.size(); ++i) {
      json["agreement"]["coupled_acceptance"].push_back(
          {{"draft_temperature", Agreement::kTemperatures[i]}, {"accepted", agreement.coupled[i]}});
    }
    json["agreement"]["kl_divergence"] = agreement.divergence;
    json["agreement"]["total_variation"] = agreement.variation;
    json["agreement"]["total_variation_first_half"] = agreement.early_variation;
    json["agreement"]["total_variation_second_half"] = agreement.late_variation;
  }
  if (const auto& repair = diagnosis.repair) {
    json["repair"] = {{"change", repair->what},
                      {"total_variation", repair->variation},
                      {"total_variation_without", repair->variation_without}};
  }
  json["plain_ms_per_token"] = diagnosis.plain.ms_per_token();
  json["plain_spread"] = diagnosis.plain.spread;
  json["shapes"] = shapes_json(diagnosis);
  const std::string wrong = miswiring(diagnosis);
  json["miswired"] = !wrong.empty();
  json["verdict"] = verdict_of(diagnosis);
  return json;
}

}  // namespace outrider
