// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>
#include <string>

#include "sampling/logits_processor.h"

namespace outrider {
namespace {

struct Range {
  const char* name;
  double value;
  bool inside;
  const char* wanted;
};

Error out_of_range(const std::string& name, const std::string& wanted, double value) {
  return usage_error(name + " must be " + wanted + ", found " + std::to_string(value) +
                     "; pass a value in range");
}

}  // namespace

Status validate(const SamplingParams& params) {
  const auto finite = [](double value) { return std::isfinite(value); };
  const Range ranges[] = {
      {"repetition_penalty", params.repetition_penalty,
       finite(params.repetition_penalty) && params.repetition_penalty > 0.0, "finite and > 0"},
      {"presence_penalty", params.presence_penalty, finite(params.presence_penalty), "finite"},
      {"frequency_penalty", params.frequency_penalty, finite(params.frequency_penalty), "finite"},
      {"temperature", params.temperature, finite(params.temperature) && params.temperature >= 0.0,
       "finite and >= 0"},
      {"top_k", static_cast<double>(params.top_k), params.top_k >= 0, ">= 0 (0 keeps all tokens)"},
      {"top_p", params.top_p, params.top_p > 0.0 && params.top_p <= 1.0, "> 0 and <= 1"},
      {"min_p", params.min_p, params.min_p >= 0.0 && params.min_p <= 1.0, ">= 0 and <= 1"},
  };
  for (const Range& range : ranges) {
    if (!range.inside) return out_of_range(range.name, range.wanted, range.value);
  }
  for (const auto& [token, bias] : params.logit_bias) {
    if (token < 0) return out_of_range("token id of logit_bias", ">= 0", token);
    if (!std::isfinite(bias) && bias != -std::numeric_limits<float>::infinity()) {
      return out_of_range("logit_bias of token " + std::to_string(token), "finite or -infinity", bias);
    }
  }
  return {};
}

}  // namespace outrider
