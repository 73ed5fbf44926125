// SPDX-License-Identifier: Apache-2.0
#include "training/heads/vocabulary/draft_vocabulary.h"

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <limits>
#include <vector>

#include "training/head_data/frozen_target.h"
#include "training/head_data/initial_head.h"
#include "training/heads/vocabulary/loss_vocabulary.h"

namespace outrider::training {
namespace {

// The tokens of the head that --init names; undefined: it proposes all.
Result<at::Tensor> initial_tokens(const HeadContext& context) {
  if (context.options.init.empty()) return at::Tensor();
  OUTRIDER_TRY(const NamedTensors stored, read_initial_head(context.options.init));
  const at::Tensor tokens = written_tokens(stored);
  const int64_t vocab = context.target.config().vocab_size;
  if (tokens.defined() &&
      (tokens.numel() == 0 || tokens.min().item<int64_t>() < 0 || tokens.max().item<int64_t>() >= vocab)) {
    return usage_error(fmt::format("--init: {}: expected a tensor d2t with ids of this target's vocabulary",
                                   context.options.init.string()));
  }
  return tokens;
}

}  // namespace

void add_draft_vocab_option(CLI::App& command, int64_t& wanted, const std::string& standard) {
  command
      .add_option("--draft-vocab", wanted,
                  "most frequent tokens that it can draft, besides the tokens of --init; 0: only these, or " +
                      standard)
      ->check(CLI::NonNegativeNumber);
}

Result<at::Tensor> draft_tokens(const HeadContext& context, int64_t wanted, int64_t standard) {
  const int64_t vocab = context.target.config().vocab_size;
  OUTRIDER_TRY(const at::Tensor first, initial_tokens(context));
  if (wanted == 0) wanted = first.defined() ? first.numel() : standard;
  if (wanted > vocab) {
    return usage_error(
        fmt::format("--draft-vocab: at most the target's {} tokens are expected, found {}", vocab, wanted));
  }
  if (first.defined() && wanted < first.numel()) {
    return usage_error(fmt::format("--draft-vocab: at least the {} tokens of --init are expected, found {}",
                                   first.numel(), wanted));
  }
  if (wanted == vocab && standard == vocab) return at::Tensor();
  std::vector<int64_t> counts = context.token_counts;
  for (int64_t i = 0; first.defined() && i < first.numel(); ++i)
    counts[static_cast<size_t>(first.data_ptr<int64_t>()[i])] = std::numeric_limits<int64_t>::max();
  return frequent_tokens(counts, wanted);
}

at::Tensor written_tokens(const NamedTensors& stored) {
  for (const auto& [name, tensor] : stored) {
    if (name == "d2t" && tensor.scalar_type() == at::kLong && tensor.dim() == 1)
      return tensor + at::arange(tensor.numel(), at::kLong);
  }
  return {};
}

void append_vocabulary_map(const at::Tensor& tokens, int64_t vocab, HeadExport& result) {
  if (!tokens.defined()) return;
  const at::Tensor ids = tokens.cpu();
  result.tensors.emplace_back("d2t", ids - at::arange(ids.numel(), at::kLong));
  result.tensors.emplace_back("t2d", at::zeros({vocab}, at::kBool).index_fill_(0, ids, true));
  result.config["draft_vocab_size"] = ids.numel();
}

}  // namespace outrider::training
