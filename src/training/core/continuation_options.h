// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace outrider::training {

struct ContinuationOptions {
  int64_t prompts = 2048;       // taken from the file at random
  int64_t new_tokens = 128;     // at most, per prompt
  int64_t max_prompt = 384;     // longer prompts lose their beginning
  int64_t batch = 128;          // sequences decoded together
  double sampled_share = 0.25;  // of the batches: sampled at `temperature`, the others greedy
  double temperature = 0.8;
  uint64_t seed = 1;
};

}  // namespace outrider::training
