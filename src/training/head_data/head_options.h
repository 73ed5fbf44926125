// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace outrider::training {

// The training options that all kinds of learned drafters share.
struct HeadOptions {
  std::filesystem::path target;             // model folder or .gguf file
  std::vector<std::filesystem::path> data;  // .jsonl files; folders made by prepare_training_data.py
  std::filesystem::path out;
  std::filesystem::path init;  // a head of this kind and shape to begin with; empty: as the kind begins
  // Text:
  int64_t context = 256;                 // tokens of the longest window
  int64_t batch_tokens = 2048;           // at most, per step
  int64_t held_out_one_in = 50;          // documents, of which one is not trained on
  int64_t windows_per_source = 4000;     // drawn at random from text that is not regenerated
  int64_t self_questions = 0;            // messages that the target writes as a user, to answer them
  std::filesystem::path question_kinds;  // .jsonl file of their kinds; empty: as the chat template begins
  int64_t regenerate = 0;                // prompts the target answers anew; 0: responses as they are
  std::filesystem::path responses;       // folder that keeps the new answers; empty: below `out`
  int64_t response_tokens = 128;         // at most, per new answer
  double sampled_share = 0.25;           // share of the new answers that are sampled; the others are greedy
  double temperature = 0.8;              // of the sampled answers
  int64_t writing_memory_mib = 4096;     // keys and values of texts that the target writes on a GPU
  // Optimizer:
  int64_t steps = 1500;
  double time_limit_s = 0.0;  // > 0: as many steps as fit, instead of `steps`
  int64_t warmup = 50;
  double learning_rate = 1e-3;
  double final_learning_rate = 5e-5;
  bool is_linear = false;  // the rate falls along a line; otherwise along half a cosine
  double weight_decay = 0.0;
  double max_gradient_norm = 1.0;
  bool is_muon = false;     // Muon for the matrices between hidden units; otherwise AdamW for all
  double hard_share = 0.0;  // share of the target's distribution moved to its likeliest token
  // Run:
  uint64_t seed = 1;
  std::string device = "cpu";
  std::string target_device;  // cpu: the serving kernels, cuda: libtorch; empty: same as `device`
  int threads = 0;            // 0: one per core
  at::ScalarType products = at::kBFloat16;
  int64_t checkpoint_every = 200;
  int64_t evaluate_every = 200;
  bool resume = false;
  std::filesystem::path
      feature_cache;  // folder for the target's states; empty: they are computed in every step
  int64_t feature_cache_mib = 4096;
  // Evaluation:
  std::filesystem::path prompts;  // .jsonl with held-out prompts; empty: beginnings of held-out text
  int64_t prompt_limit = 40;
  int64_t measured_tokens = 96;  // per prompt
  std::filesystem::path draft;   // a draft model to compare with; empty: none
  int64_t measured_depth = 6;    // levels of drafts
  int64_t measured_nodes = 24;   // nodes of drafted trees
};

}  // namespace outrider::training
