// SPDX-License-Identifier: Apache-2.0
// The optimizer of all trainings: AdamW (Loshchilov and Hutter 2019), or Muon (Jordan et al. 2024, with the
// scale of Moonlight, arXiv 2502.16982) for the matrices between hidden units and AdamW for all else.
#pragma once

#include <torch/types.h>

#include "training/core/named_tensors.h"

namespace outrider::training {

struct OptimizerOptions {
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double weight_decay = 0.1;  // applied only to matrices, not to norms and biases
  double max_gradient_norm = 1.0;
  bool is_muon = false;
  double muon_momentum = 0.95;
  at::ScalarType products = at::kFloat;  // type of the products that orthogonalize Muon's updates
};

// The nearest matrix to `update`, [rows, columns], with singular values of about 1 (0.7 to 1.2), by five
// Newton-Schulz iterations in the type `products`; f32.
at::Tensor orthogonalized(const at::Tensor& update, at::ScalarType products);

class Optimizer {
 public:
  Optimizer(NamedTensors parameters, const OptimizerOptions& options);

  // Updates the parameters from their gradients, with the global norm clipped, and clears the gradients.
  // Returns the norm before clipping; if it is not finite, parameters and moments stay unchanged.
  double step(double learning_rate);

  // The moments by name ("first.<parameter>", "second.<parameter>"; Muon has only the first) for checkpoints;
  // they share memory.
  NamedTensors state() const;
  int64_t steps_taken() const { return steps_; }
  void set_steps_taken(int64_t steps) { steps_ = steps; }

 private:
  double gradient_norm() const;
  void adamw(size_t index, double learning_rate, double clip);
  void muon(size_t index, double learning_rate, double clip);

  NamedTensors parameters_;
  OptimizerOptions options_;
  std::vector<at::Tensor> first_, second_;  // second_: undefined for parameters that Muon updates
  int64_t steps_ = 0;
};

}  // namespace outrider::training
