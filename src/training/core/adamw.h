// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include "training/core/named_tensors.h"

namespace outrider::training {

struct AdamWOptions {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.1;  // applied to matrices alone, not to norms and biases
  double max_gradient_norm = 1.0;
};

// AdamW (Loshchilov and Hutter 2019) with clipping of the global gradient norm.
class AdamW {
 public:
  AdamW(NamedTensors parameters, const AdamWOptions& options);

  // Updates the parameters from their gradients and clears these. Returns the gradient norm before clipping;
  // if it is not finite, parameters and moments stay unchanged.
  double step(double learning_rate);

  // The moments by name ("first.<parameter>", "second.<parameter>") for checkpoints; they share memory.
  NamedTensors state() const;
  int64_t steps_taken() const { return steps_; }
  void set_steps_taken(int64_t steps) { steps_ = steps; }

 private:
  double gradient_norm() const;

  NamedTensors parameters_;
  AdamWOptions options_;
  std::vector<at::Tensor> first_, second_;
  int64_t steps_ = 0;
};

}  // namespace outrider::training
