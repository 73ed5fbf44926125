// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "draft_heads/head_file.h"
#include "models/model.h"

namespace outrider {

// Names of the tensors of one MTP module.
struct MtpNames {
  std::string embedding_norm, hidden_norm, fc, norm;
  std::string layer;                 // prefix of the decoder layer's
  std::string embed_tokens, output;  // copies of the target's, which are used
};

// DeepSeek's names, in a separate directory or among the target's tensors, or Qwen's names.
struct MtpLayout {
  bool is_qwen = false;
  int64_t first_layer = 0;  // DeepSeek's: number of the first module among the target's layers
  int64_t modules = 1;

  MtpNames names(int64_t module) const;
  // Whether the tensor is the target's; modules may lie in its directory.
  bool is_targets(std::string_view name) const;
};

// Error: a number of modules that is not supported.
Result<MtpLayout> read_mtp_layout(const HeadFile& head, const Model& target);

}  // namespace outrider
