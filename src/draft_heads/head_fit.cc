// SPDX-License-Identifier: Apache-2.0
#include "draft_heads/head_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "config/methods.h"
#include "config/option_value.h"
#include "draft_heads/recurrent_head.h"
#include "formats/hf/hf_config.h"

namespace outrider {
namespace {

// The dimension that the names of HeadTraits stand for; 0: no such tensor is there.
int64_t size_of(const HeadFile& head, std::string_view names) {
  for (const std::string_view name : split(names, '|')) {
    const size_t colon = name.find(':');
    const std::string_view mark = name.substr(0, colon);
    const size_t axis = colon == std::string_view::npos ? 0 : static_cast<size_t>(name[colon + 1] - '0');
    const auto found = std::ranges::find_if(head.tensors, [&](const auto& tensor) {
      return is_name_of(mark, tensor.first) && axis < tensor.second.shape.size();
    });
    if (found != head.tensors.end()) return found->second.shape[axis];
  }
  return 0;
}

// A wrong configuration counts as silent here; loading the head reports the error.
int64_t config_number(const HeadFile& head, std::string_view key) {
  const auto value = head.config.root().integer(key);
  return value.ok() ? value->value_or(0) : 0;
}

double rope_theta_of(const HeadFile& head) {
  const auto object = layer_config_object(head);
  if (!object.ok()) return 0.0;
  const auto config = read_layer_config(*object);
  return config.ok() && !config->ropes.empty() ? config->ropes.front().theta : 0.0;
}

}  // namespace

HeadSummary summarize_head(const HeadFile& head) {
  const HeadTraits& traits = method_row(head.method).head;
  const int64_t said = config_number(head, "target_hidden_size");
  const int64_t vocab_size = size_of(head, traits.target_vocab_size);
  HeadSummary summary{.method = head.method,
                      .parameters = 0,
                      .bytes = 0,
                      .hidden_size = said != 0 ? said : size_of(head, traits.target_hidden_size),
                      .vocab_size = vocab_size != 0 ? vocab_size : config_number(head, "vocab_size"),
                      .target = {},
                      .agreement = 0.0,
                      .rope_theta = rope_theta_of(head)};
  for (const auto& [name, tensor] : head.file.tensors) {
    summary.parameters += tensor.rows() * tensor.cols();
    summary.bytes += tensor.bytes();
  }
  const auto target = head.config.root().string("outrider_target");
  if (target.ok() && *target) summary.target = **target;
  const auto agreement = head.config.root().number("outrider_agreement");
  if (agreement.ok()) summary.agreement = agreement->value_or(0.0);
  return summary;
}

std::vector<std::string> misfits(const HeadSummary& head, const ModelConfig& target,
                                 std::string_view fingerprint) {
  std::vector<std::string> reasons;
  if (head.hidden_size != 0 && head.hidden_size != target.hidden_size) {
    reasons.push_back(
        fmt::format("made for hidden size {}, the target's is {}", head.hidden_size, target.hidden_size));
  }
  if (head.vocab_size != 0 && head.vocab_size != target.vocab_size) {
    reasons.push_back(fmt::format("made for a vocabulary of {} tokens, the target's has {}", head.vocab_size,
                                  target.vocab_size));
  }
  if (!head.target.empty() && head.target != fingerprint) {
    reasons.push_back(fmt::format("trained for the target with fingerprint {}, this one's is {}", head.target,
                                  fingerprint));
  }
  return reasons;
}

}  // namespace outrider
