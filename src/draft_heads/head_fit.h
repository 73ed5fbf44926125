// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "draft_heads/head_file.h"
#include "formats/model_config.h"

namespace outrider {

// Properties of a head that its files show without loading its network.
struct HeadSummary {
  Method method = {};
  int64_t parameters = 0;
  int64_t bytes = 0;
  int64_t hidden_size = 0;  // the target's; 0: the tensors do not show it
  int64_t vocab_size = 0;   // the target's; 0: the files do not show it
  std::string target;       // fingerprint, if it names one
  // Share of held-out places at which it proposed the target's likeliest token when it was trained; 0:
  // unknown.
  double agreement = 0.0;
  double rope_theta = 0.0;  // 0: it has no rotated layers
};

HeadSummary summarize_head(const HeadFile& head);

// The reasons why the head cannot draft for a target; none: it fits.
std::vector<std::string> misfits(const HeadSummary& head, const ModelConfig& target,
                                 std::string_view fingerprint);

}  // namespace outrider
