// SPDX-License-Identifier: Apache-2.0
// Measures acceptance with the serving engine.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "outrider/engine.h"
#include "outrider/result.h"
#include "training/head_data/frozen_target.h"
#include "training/head_data/head_data.h"
#include "training/head_data/head_options.h"

namespace outrider::training {

struct ServedAcceptance {
  double tokens_per_pass = 0.0;  // tokens per target pass, the target's own token included
  std::vector<double> by_depth;  // share of passes that accepted a draft at that depth
};

// The result of another drafter on the same prompts.
struct Baseline {
  std::string name;
  ServedAcceptance served;
};

class AcceptanceProbe {
 public:
  // Takes the prompts of options.prompts, or beginnings of held-out text.
  static Result<AcceptanceProbe> create(const HeadOptions& options, const FrozenTarget& target,
                                        const HeadData& data);

  const std::vector<std::vector<TokenId>>& prompts() const { return prompts_; }
  // Decodes all prompts greedily. Error: this drafter cannot serve this target.
  Result<ServedAcceptance> measure(const SpeculativeOptions& speculation) const;
  // Options for drafts of at most `max_draft_len` levels; a tree has options.measured_nodes nodes.
  SpeculativeOptions speculation(Method decoding_type, const std::filesystem::path& model, TreeKind tree,
                                 int64_t max_draft_len) const;
  // Options for several draft models in one dynamic tree of options.measured_nodes nodes (SpecInfer).
  SpeculativeOptions shared_speculation(std::vector<std::filesystem::path> models,
                                        int64_t max_draft_len) const;
  // Measures no drafter, NGram, and DraftTarget with the model options.draft and with each of `others`.
  Result<std::vector<Baseline>> baselines(std::vector<std::filesystem::path> others) const;

 private:
  AcceptanceProbe(const HeadOptions& options, std::vector<std::vector<TokenId>> prompts)
      : options_(options), prompts_(std::move(prompts)) {}

  HeadOptions options_;
  std::vector<std::vector<TokenId>> prompts_;
};

}  // namespace outrider::training
