// SPDX-License-Identifier: Apache-2.0
// A learned drafter's network in training: what the trainer asks of every kind. A kind is one pair of files
// with a function that makes its HeadKind, and a line in head_kinds.cc.
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
#include "training/head_data/documents.h"
#include "training/heads/head_options.h"
#include "training/lm/llama.h"

namespace CLI {
class App;
}

namespace outrider::training {

class FrozenTarget;
struct Window;

// What loss() reads of the target's inner state, besides the hidden states behind the final norm.
struct FeatureNeeds {
  std::vector<int64_t> taps = {};  // rising: the residual stream that enters this layer
  bool keys_values = false;        // cached keys (rotated) and values of all layers
};

// One step's windows of text with the target's state. A window may be shorter than `length`: the rest is
// padding, token 0, never counted, zeros elsewhere. All on the training device.
struct HeadBatch {
  at::Tensor tokens;   // int64 [windows, length]
  at::Tensor counted;  // f32 [windows, length]: 1 where foreseeing this token counts (a response's, say)
  at::Tensor known;    // f32 [windows, length]: 1 where there is a token, 0 for padding
  at::Tensor hidden;  // f32 [windows, length, hidden]: behind the final norm; row t's distribution is that of
                      // token t+1
  at::Tensor features;     // f32 [windows, length, taps * hidden], or undefined
  at::Tensor keys_values;  // f32 [windows, length, layers, kv_heads, 2, head_dim] (keys first), or undefined
  uint64_t seed = 0;       // all chance within loss() is a function of this, different in every step
  double progress = 0.0;   // of the training, 0 to 1
  bool measures = false;   // depths beyond those trained are worth their time; no gradient is wanted
};

// Of drafts that begin at every row: whether the token at this depth is the target's likeliest there.
struct DepthAgreement {
  at::Tensor agrees;      // f32 [windows, length]
  at::Tensor counts;      // f32 [windows, length]: 0 where the row has no such token, or it does not count
  at::Tensor ranks = {};  // f32 [k], where trees are made of it: share of rows whose token was guess number i
};

struct HeadLoss {
  at::Tensor loss;                     // scalar
  std::vector<DepthAgreement> depths;  // by depth of the draft, 1 first
};

// The published layout; the trainer adds what names the target.
struct HeadExport {
  NamedTensors tensors;
  nlohmann::json config;
  std::vector<std::filesystem::path> files = {};  // copied beside them
};

class DraftHead {
 public:
  virtual ~DraftHead() = default;
  virtual FeatureNeeds needs() const = 0;
  // f32 leaves in a fixed order, by their published names.
  virtual NamedTensors parameters() const = 0;
  virtual HeadLoss loss(const HeadBatch& batch) const = 0;
  virtual HeadExport exported() const = 0;
  // What decides the numbers of a run besides parameters, config and HeadOptions; a resumed run must agree.
  virtual nlohmann::json facts() const = 0;
  // Texts to learn from in the place of a step's windows, of the same lengths; empty: the windows as they
  // are.
  virtual std::vector<Document> rewritten(std::span<const Window> /*windows*/, uint64_t /*seed*/) const {
    return {};
  }
  // Draft models that will share one tree with it.
  virtual std::vector<std::filesystem::path> companions() const { return {}; }
};

struct HeadContext {
  const FrozenTarget& target;
  const HeadOptions& options;
  const std::vector<int64_t>& token_counts;  // by id, of counted tokens of the training text
  at::Device device;
};

// A subcommand of outrider-train.
struct HeadKind {
  std::string command;                   // "eagle3"
  Method decoding_type = Method::kNone;  // the method that serves it
  std::string description;
  std::string ranks_key = {};  // of the config: the shares of DepthAgreement::ranks, by depth
  HeadOptions defaults = {};
  std::function<void(CLI::App&)> add_options = {};  // of its own, kept until make()
  std::function<Result<std::unique_ptr<DraftHead>>(const HeadContext&)> make = {};
};

}  // namespace outrider::training
