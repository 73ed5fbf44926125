// SPDX-License-Identifier: Apache-2.0
#include "draft_heads/head_fit.h"

#include <fmt/format.h>

#include <string_view>

#include "draft_heads/recurrent_head.h"
#include "formats/hf/hf_config.h"

namespace outrider {
namespace {

constexpr std::string_view kMoaNorm = "self_attention.input_layernorm.weight";

// Dimension `axis` of the tensor with a name that ends so; 0: there is none.
int64_t size_of(const HeadFile& head, std::string_view end, size_t axis) {
  for (const auto& [name, entry] : head.tensors) {
    if (name.ends_with(end) && axis < entry.shape.size()) return entry.shape[axis];
  }
  return 0;
}

// A wrong configuration counts as silent here; loading the head reports the error.
int64_t config_number(const HeadFile& head, std::string_view key) {
  const auto value = head.config.root().integer(key);
  return value.ok() ? value->value_or(0) : 0;
}

int64_t hidden_size_of(const HeadFile& head) {
  switch (head.method) {
    case Method::kMedusa:
      return size_of(head, "0.0.linear.weight", 1);
    case Method::kEagle:
      return size_of(head, "fc.weight", 0);
    case Method::kEagle3:
    case Method::kPEagle: {
      const int64_t said = config_number(head, "target_hidden_size");
      return said != 0 ? said : size_of(head, "fc.weight", 0);
    }
    case Method::kMtp: {
      const int64_t deepseek = size_of(head, "hnorm.weight", 0);
      return deepseek != 0 ? deepseek : size_of(head, "pre_fc_norm_hidden.weight", 0);
    }
    case Method::kMoa:
      // Not layer_self_attention's.
      return head.tensors.contains(kMoaNorm) ? head.tensors.find(kMoaNorm)->second.shape.front() : 0;
    case Method::kDFlash:
    case Method::kDSpark:
      return size_of(head, "hidden_norm.weight", 0);
    case Method::kAssistant:
      return size_of(head, "post_projection.weight", 0);
    default:
      return 0;
  }
}

int64_t vocab_size_of(const HeadFile& head) {
  if (head.method == Method::kMedusa) {
    const int64_t blocks = [&] {
      int64_t count = 0;
      while (size_of(head, fmt::format("0.{}.linear.weight", count), 0) != 0) ++count;
      return count;
    }();
    return size_of(head, fmt::format("0.{}.weight", blocks), 0);
  }
  for (const std::string_view name : {"t2d", "embed_tokens.weight", "model.embed_tokens.weight"}) {
    if (const int64_t size = size_of(head, name, 0); size != 0) return size;
  }
  return config_number(head, "vocab_size");
}

double rope_theta_of(const HeadFile& head) {
  const auto object = layer_config_object(head);
  if (!object.ok()) return 0.0;
  const auto config = read_layer_config(*object);
  return config.ok() && !config->ropes.empty() ? config->ropes.front().theta : 0.0;
}

}  // namespace

HeadSummary summarize_head(const HeadFile& head) {
  HeadSummary summary{.method = head.method,
                      .parameters = 0,
                      .bytes = 0,
                      .hidden_size = hidden_size_of(head),
                      .vocab_size = vocab_size_of(head),
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
