// SPDX-License-Identifier: Apache-2.0
// The objects behind the handles of outrider.h.
#pragma once

#include <memory>
#include <vector>

#include "outrider/drafter.h"
#include "outrider/open.h"
#include "outrider/outrider.h"

struct outrider_options {
  std::vector<outrider::NamedOption> values = {};
  std::shared_ptr<outrider::Drafter> drafter = {};
};

struct outrider_engine {
  outrider::OpenedEngine opened;

  outrider::Engine& engine() const { return *opened.engine; }
};

struct outrider_request {
  outrider::Request request;
};

struct outrider_completion {
  explicit outrider_completion(const outrider::Completion& finished);
  outrider_completion(const outrider_completion& other) : outrider_completion(other.completion) {}
  outrider_completion& operator=(const outrider_completion&) = delete;

  // Log-probabilities as columns; `ids` and `top` have the rows of all tokens, one after the other.
  struct TopTokens {
    size_t begin = 0;
    size_t count = 0;
  };

  outrider::Completion completion;
  std::vector<float> logprobs = {};
  std::vector<float> prompt_logprobs = {};
  std::vector<TopTokens> rows = {};
  std::vector<int32_t> ids = {};
  std::vector<float> top = {};
  outrider_statistics statistics = {};
};

struct outrider_tree {
  outrider::TokenTree* tree = nullptr;
};
