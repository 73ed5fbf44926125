// SPDX-License-Identifier: Apache-2.0
#include "training/evaluation/held_out_agreement.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace outrider::training {
namespace {

constexpr int64_t kWindows = 64;  // at most

void add_ranks(const at::Tensor& shares, size_t depth, HeldOutResult& result) {
  const at::Tensor values = shares.to(at::kCPU, at::kDouble).contiguous();
  result.ranks.resize(std::max(result.ranks.size(), depth + 1));
  result.ranks[depth].resize(static_cast<size_t>(values.numel()));
  for (size_t i = 0; i < result.ranks[depth].size(); ++i)
    result.ranks[depth][i] += values.data_ptr<double>()[i];
}

}  // namespace

double HeldOutResult::tokens_per_pass() const {
  double tokens = 1.0;
  for (const double share : agreement) tokens += share;
  return tokens;
}

Result<HeldOutResult> measure_held_out(const std::function<HeadLoss(const HeadBatch&)>& loss_of,
                                       const HeadData& data, StateSource& source, at::Device device) {
  const at::NoGradGuard no_grad;
  HeldOutResult result;
  std::vector<double> agreeing, counted;  // by depth
  const std::vector<std::vector<Window>> batches = data.held_out(kWindows);
  for (const std::vector<Window>& windows : batches) {
    OUTRIDER_TRY(HeadBatch batch, make_head_batch(windows, source, device));
    batch.measures = true;
    batch.progress = 1.0;
    const HeadLoss loss = loss_of(batch);
    result.loss += loss.loss.item<double>() / static_cast<double>(batches.size());
    agreeing.resize(std::max(agreeing.size(), loss.depths.size()));
    counted.resize(agreeing.size());
    at::Tensor so_far;
    for (size_t depth = 0; depth < loss.depths.size(); ++depth) {
      const DepthAgreement& here = loss.depths[depth];
      so_far = so_far.defined() ? so_far * here.agrees : here.agrees;
      agreeing[depth] += (so_far * here.counts).sum().item<double>();
      counted[depth] += here.counts.sum().item<double>();
      if (here.ranks.defined()) add_ranks(here.ranks / static_cast<double>(batches.size()), depth, result);
    }
  }
  for (size_t depth = 0; depth < agreeing.size(); ++depth)
    result.agreement.push_back(agreeing[depth] / std::max(1.0, counted[depth]));
  return result;
}

}  // namespace outrider::training
