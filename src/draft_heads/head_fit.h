// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "draft_heads/head_file.h"
#include "formats/model_config.h"

namespace outrider {

// What a learned drafter's files say of it, without its network.
struct HeadSummary {
  HeadKind kind = HeadKind::kEagle;
  int64_t parameters = 0;
  int64_t bytes = 0;
  int64_t hidden_size = 0;  // of the target it is made for; 0: its tensors do not say
  int64_t vocab_size = 0;   // the same
  std::string target;       // fingerprint, if it names one
};

HeadSummary summarize_head(const HeadFile& head);

// Why it cannot draft for a target, a reason each; none: it fits.
std::vector<std::string> misfits(const HeadSummary& head, const ModelConfig& target,
                                 std::string_view fingerprint);

}  // namespace outrider
