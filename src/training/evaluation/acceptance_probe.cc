// SPDX-License-Identifier: Apache-2.0
#include "training/evaluation/acceptance_probe.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "config/methods.h"

namespace outrider::training {
namespace {

constexpr size_t kTextPrompt = 48;  // tokens at the beginning of a text that are its prompt

// The beginnings of held-out windows: of a conversation everything before its response.
std::vector<std::vector<TokenId>> held_out_prompts(const HeadData& data, int64_t limit) {
  std::vector<std::vector<TokenId>> prompts;
  for (const std::vector<Window>& windows : data.held_out(limit)) {
    for (const Window& window : windows) {
      const auto first = std::find(window.counted.begin(), window.counted.end(), uint8_t{1});
      auto length = static_cast<size_t>(first - window.counted.begin());
      if (length == 0) length = std::min(kTextPrompt, window.tokens.size() / 2);
      prompts.emplace_back(window.tokens.begin(), window.tokens.begin() + static_cast<int64_t>(length));
    }
  }
  return prompts;
}

}  // namespace

Result<AcceptanceProbe> AcceptanceProbe::create(const HeadOptions& options, const FrozenTarget& target,
                                                const HeadData& data) {
  if (options.prompts.empty()) return AcceptanceProbe(options, held_out_prompts(data, options.prompt_limit));
  OUTRIDER_TRY(auto prompts, read_prompts(options.prompts, target.file(), options.prompt_limit));
  return AcceptanceProbe(options, std::move(prompts));
}

SpeculativeOptions AcceptanceProbe::speculation(Method decoding_type, const std::filesystem::path& model,
                                                TreeKind tree, int64_t max_draft_len) const {
  constexpr int kBreadth = 8;
  SpeculativeOptions speculation;
  speculation.decoding_type = decoding_type;
  speculation.speculative_model = model;
  speculation.tree.kind = tree;
  speculation.max_draft_len = static_cast<int>(std::min(max_draft_len, options_.measured_nodes));
  speculation.tree.dynamic_tree_max_top_k = kBreadth;
  speculation.tree.max_total_draft_tokens = static_cast<int>(options_.measured_nodes);
  return speculation;
}

SpeculativeOptions AcceptanceProbe::shared_speculation(std::vector<std::filesystem::path> models,
                                                       int64_t max_draft_len) const {
  SpeculativeOptions shared = speculation(Method::kSpecInfer, {}, TreeKind::kDynamic, max_draft_len);
  shared.speculative_models = std::move(models);
  return shared;
}

Result<ServedAcceptance> AcceptanceProbe::measure(const SpeculativeOptions& speculation) const {
  EngineOptions engine_options;
  engine_options.model = options_.target;
  engine_options.speculation = speculation;
  engine_options.threads = options_.threads;
  OUTRIDER_TRY(const std::unique_ptr<Engine> engine, Engine::open(std::move(engine_options)));
  SpeculationStats total;
  for (const std::vector<TokenId>& prompt : prompts_) {
    Request request{.prompt = prompt, .max_tokens = options_.measured_tokens};
    request.sampling.temperature = 0.0f;
    const auto sink = [&total](RequestId, const outrider::Progress& progress) {
      if (progress.completion == nullptr) return;
      const SpeculationStats& one = progress.completion->speculation;
      total.steps += one.steps;
      total.committed += one.committed;
      const auto& accepted = one.accepted_per_position;
      total.accepted_per_position.resize(std::max(total.accepted_per_position.size(), accepted.size()));
      for (size_t i = 0; i < accepted.size(); ++i) total.accepted_per_position[i] += accepted[i];
    };
    OUTRIDER_TRY([[maybe_unused]] const RequestId id, engine->submit(std::move(request), sink));
  }
  while (engine->step()) {
  }
  ServedAcceptance served{.tokens_per_pass = total.acceptance_length(), .by_depth = {}};
  for (const int64_t accepted : total.accepted_per_position)
    served.by_depth.push_back(static_cast<double>(accepted) /
                              static_cast<double>(std::max<int64_t>(1, total.steps)));
  return served;
}

Result<std::vector<Baseline>> AcceptanceProbe::baselines(std::vector<std::filesystem::path> others) const {
  std::vector<Baseline> found = {
      {.name = std::string(method_name(Method::kNone)), .served = {.tokens_per_pass = 1.0, .by_depth = {}}}};
  OUTRIDER_TRY(ServedAcceptance ngram,
               measure(speculation(Method::kNGram, {}, TreeKind::kChain, options_.measured_depth)));
  found.push_back({std::string(method_name(Method::kNGram)), std::move(ngram)});
  if (!options_.draft.empty()) others.insert(others.begin(), options_.draft);
  for (const std::filesystem::path& other : others) {
    for (const auto& [name, tree] :
         {std::pair{", chain", TreeKind::kChain}, std::pair{", tree", TreeKind::kDynamic}}) {
      OUTRIDER_TRY(ServedAcceptance draft,
                   measure(speculation(Method::kDraftTarget, other, tree, options_.measured_depth)));
      found.push_back({other.filename().string() + name, std::move(draft)});
    }
  }
  return found;
}

}  // namespace outrider::training
