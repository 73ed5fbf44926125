// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "outrider/result.h"
#include "training/core/token_data.h"
#include "training/lm/continuation.h"
#include "training/lm/llama_config.h"

namespace outrider::training {

// Options of `outrider-train lm`; the defaults made the shipped target model.
struct LmOptions {
  std::filesystem::path data;       // train/ and heldout/ with one <domain>.u16 each
  std::filesystem::path tokenizer;  // folder with tokenizer.json and its companions
  std::filesystem::path out;
  Mixture mixture = {{"prose", 0.2}, {"stories", 0.2}, {"code", 0.2}, {"instruct", 0.2}, {"math", 0.2}};
  LlamaConfig shape;  // vocab_size and max_context are filled in from the tokenizer and the context lengths
  std::vector<int64_t> context_lengths = {256, 512, 1024};
  int64_t batch_tokens = 4096;
  int64_t steps = 10000;
  int64_t warmup = 200;
  double learning_rate = 2e-3;
  double final_learning_rate = 1e-4;
  double weight_decay = 0.1;
  double max_gradient_norm = 1.0;
  uint64_t seed = 1;
  std::string device = "cpu";
  int threads = 0;  // 0: libtorch's choice
  at::ScalarType products = at::kBFloat16;
  int64_t checkpoint_every = 500;
  int64_t evaluate_every = 500;
  bool resume = false;
  std::filesystem::path init;     // model folder of the first weights; empty: they are drawn at random
  std::filesystem::path distill;  // the teacher's folder; empty: learn from the data
  // The teacher continues the prompts in data/prompts; `continuations.prompts` counts all domains.
  ContinuationOptions continuations;
  double text_share = 0.3;  // share of the windows that hold text as it is; the others hold continuations
  double hard_share = 0.5;  // share of the teacher's distribution moved to its most probable token
};

// Trains a language model, from data or by distillation, and leaves a Hugging Face folder in options.out.
Status train_lm(const LmOptions& options);

}  // namespace outrider::training
