// SPDX-License-Identifier: Apache-2.0
// The interface between the trainer and the network of a learned drafter. A kind of drafter is one pair of
// files with a function that returns its HeadRecipe, and a line in head_recipes.cc.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "outrider/result.h"
#include "outrider/speculative_options.h"
#include "training/core/named_tensors.h"
#include "training/head_data/documents.h"
#include "training/head_data/frozen_target.h"
#include "training/head_data/head_batches.h"
#include "training/head_data/head_options.h"

namespace CLI {
class App;
}

namespace outrider::training {

// A drafter in its published layout; the trainer adds the fields that identify the target.
struct HeadExport {
  NamedTensors tensors;
  nlohmann::json config;
  std::vector<std::filesystem::path> files = {};  // copied into the same folder
};

class DraftHead {
 public:
  virtual ~DraftHead() = default;
  virtual FeatureNeeds needs() const = 0;
  // The f32 leaf tensors in a fixed order, by their published names.
  virtual NamedTensors parameters() const = 0;
  virtual HeadLoss loss(const HeadBatch& batch) const = 0;
  virtual HeadExport exported() const = 0;
  // The options that must not change when a run is resumed, besides parameter shapes, config and HeadOptions.
  virtual nlohmann::json fingerprint() const = 0;
  // The tensors of a written head of this kind, in the shapes of parameters() where they can be brought to
  // them.
  virtual NamedTensors fitted(NamedTensors stored) const { return stored; }
  // Texts to learn from instead of a step's windows, with the windows' lengths; empty: the windows
  // themselves.
  virtual std::vector<Document> rewritten(std::span<const Window> /*windows*/, uint64_t /*seed*/) const {
    return {};
  }
  // Draft models that share one tree with this one when they serve.
  virtual std::vector<std::filesystem::path> companions() const { return {}; }
};

struct HeadContext {
  const FrozenTarget& target;
  const HeadOptions& options;
  const std::vector<int64_t>& token_counts;  // by id: how often the token counts in the training text
  at::Device device;
};

// How one kind of drafter is trained: its subcommand of outrider-train, its options and its network.
struct HeadRecipe {
  std::string command;                   // name of the subcommand: "eagle3"
  Method decoding_type = Method::kNone;  // the method that serves it
  std::string description;
  std::string ranks_key = {};  // field of config.json that gets DepthAgreement::ranks by depth; empty: none
  HeadOptions defaults = {};
  bool takes_any_target = false;                    // else the target has the form of Llama
  std::function<void(CLI::App&)> add_options = {};  // adds the options of this kind, which make() reads
  std::function<Result<std::unique_ptr<DraftHead>>(const HeadContext&)> make = {};
};

}  // namespace outrider::training
