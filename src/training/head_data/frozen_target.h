// SPDX-License-Identifier: Apache-2.0
// The target of a learned drafter. Its weights stay as they are; it runs with the kernels that serve it, or
// in libtorch on a GPU.
#pragma once

#include <torch/types.h>

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/thread_pool.h"
#include "formats/model_file.h"
#include "kv/kv_cache.h"
#include "models/model.h"
#include "outrider/result.h"
#include "training/core/decoder_layers.h"
#include "training/head_data/target_states.h"

namespace outrider::training {

class TorchTarget;

class FrozenTarget {
 public:
  // threads >= 1
  // kernels: the name of a kernel table; empty: the best of this machine
  static Result<std::unique_ptr<FrozenTarget>> open(const std::filesystem::path& path, int threads,
                                                    std::string_view kernels = "");
  ~FrozenTarget();
  // From now on run() computes in libtorch on this device and leaves the states there.
  void move_to(at::Device device, at::ScalarType products);
  const TorchTarget* moved() const { return moved_.get(); }  // null: it was not moved

  const ModelConfig& config() const { return model_->config(); }
  const ModelFile& file() const { return file_; }
  const std::string& fingerprint() const { return fingerprint_; }
  std::string name() const { return file_.path.filename().string(); }
  // The arithmetic that rounds the states: "kernels", or libtorch's device and type of products.
  const std::string& arithmetic() const { return arithmetic_; }

  // A weight by its Hugging Face name, as f32 on the CPU; undefined if the model has none.
  at::Tensor weight(const std::string& name) const;
  // Every token as it enters the first layer, without learned positions, f32 [vocab, hidden].
  at::Tensor embedding() const;
  // f32 [vocab, hidden]; its products are logits before any cap.
  at::Tensor output_head() const;
  // The scales of an RMS norm, f32 [hidden]; ones where the target has another kind of norm, or none there.
  at::Tensor norm(const std::string& name) const;
  // Copies of one layer's weights. Precondition: the target has the form of Llama.
  LayerWeights layer(int64_t index) const;
  // A layer of this shape that begins as the target's last one, as far as attention and MLP have that shape.
  // The rest is drawn, and adds nothing at first.
  LayerWeights last_layer(const LayerShape& shape, at::Generator& generator) const;

  // Chooses the states that run() returns. Error: taps outside of the layers.
  Status want(const FeatureNeeds& needs);
  const FeatureNeeds& needs() const { return needs_; }
  // One forward pass over all windows, each a separate text; the states are in the windows' order.
  Result<std::vector<TargetStates>> run(std::span<const std::span<const TokenId>> windows);

 private:
  FrozenTarget(ModelFile file, int threads);
  Result<std::vector<TargetStates>> run_kernels(std::span<const std::span<const TokenId>> windows);
  void finish(TargetStates& states) const;
  // f32 [tokens, layers, kv_heads, 2, head_dim]
  at::Tensor keys_values_of(const KvTransaction& staged);

  ModelFile file_;
  ThreadPool pool_;
  std::string fingerprint_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<const TorchTarget> moved_;
  std::string arithmetic_ = "kernels";
  std::unique_ptr<outrider::KvCache> cache_;
  FeatureNeeds needs_;
  at::Tensor head_;  // [vocab, hidden] in the type of the states, for their likeliest tokens
};

}  // namespace outrider::training
