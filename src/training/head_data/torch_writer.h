// SPDX-License-Identifier: Apache-2.0
// Writes texts with the target in libtorch, hundreds at a time: on a GPU every pass over the weights is
// shared by as many texts as there is memory for their keys and values.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <span>
#include <vector>

#include "training/head_data/frozen_target.h"
#include "training/head_data/text_writer.h"
#include "training/head_data/torch_target.h"

namespace outrider::training {

// Draws one token per row, int64 [rows], by inverting the distribution function of softmax(logits), f32
// [rows, vocab], at `uniforms`, f32 [rows, 1] in [0, 1). `top_p`, f32 [rows, 1]: the distribution has only
// the smallest set of likeliest tokens that reaches this probability; undefined: all tokens.
at::Tensor drawn_tokens(const at::Tensor& logits, const at::Tensor& top_p, const at::Tensor& uniforms);

class TorchWriter : public TextWriter {
 public:
  // The target must have been moved and must outlive the writer. memory: bytes for keys and values
  TorchWriter(const FrozenTarget& target, int64_t memory);

  int64_t preferred_tasks() const override;
  Status write(std::span<const WritingTask> tasks, const TextSink& sink, GenerationProgress& shown) override;

 private:
  class Wave;

  const FrozenTarget& target_;
  const TorchTarget& torch_;
  int64_t memory_;
  at::Tensor head_;  // [vocab, hidden] in the type of products
};

}  // namespace outrider::training
