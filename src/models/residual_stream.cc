// SPDX-License-Identifier: Apache-2.0
#include "models/residual_stream.h"

namespace outrider {

ResidualStream::ResidualStream(const ModelConfig& config, LayerBackend& backend)
    : size_(config.hidden_size),
      factor_(static_cast<float>(config.scales.residual)),
      adds_first_(config.norm.placement == NormPlacement::kSum),
      has_branches_(config.block != BlockKind::kSequential),
      backend_(backend),
      hidden_(backend),
      normed_(backend),
      delta_(backend),
      branch_(backend) {}

void ResidualStream::reserve(int64_t rows) {
  for (BackendRows* states : {&hidden_, &normed_, &delta_}) states->reserve(rows, size_);
  if (has_branches_) branch_.reserve(rows, size_);
}

FloatAddress ResidualStream::normalize(const Norm& norm, int64_t rows) {
  backend_.add_and_normalize({.x = hidden(),
                              .has_delta = is_delta_pending_,
                              .delta = delta(),
                              .norm = &norm,
                              .y = normed(),
                              .rows = rows,
                              .dim = size_});
  is_delta_pending_ = false;
  return norm.empty() ? hidden() : normed();
}

void ResidualStream::normalize_again(const Norm& norm, int64_t rows) {
  backend_.normalize(hidden(), norm, normed(), rows);
}

void ResidualStream::finish_output(const Norm& norm, FloatAddress output, int64_t rows) {
  if (!norm.empty()) backend_.normalize(output, norm, output, rows);
  if (factor_ != 1) backend_.scale(factor_, output, rows * size_);
}

void ResidualStream::add_delta(const Norm& norm, int64_t rows) {
  is_delta_pending_ = true;
  if (!adds_first_) return finish_output(norm, delta(), rows);
  backend_.add_and_normalize({.x = hidden(),
                              .has_delta = true,
                              .delta = delta(),
                              .norm = &norm,
                              .y = hidden(),
                              .rows = rows,
                              .dim = size_});
  is_delta_pending_ = false;
}

void ResidualStream::join_branch(const Norm& norm, int64_t rows) {
  finish_output(norm, branch(), rows);
  backend_.add(branch(), delta(), rows * size_);
}

void ResidualStream::scale(float factor, int64_t rows) {
  normalize({}, rows);
  backend_.scale(factor, hidden(), rows * size_);
}

}  // namespace outrider
