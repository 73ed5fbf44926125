// SPDX-License-Identifier: Apache-2.0
#include "drafters/combined/feature_share.h"

#include <algorithm>
#include <iterator>
#include <numeric>

namespace outrider {

FeatureTaps merge_features(const FeatureTaps& a, const FeatureTaps& b) {
  FeatureTaps all{.layers = {}, .final_norm = a.final_norm || b.final_norm};
  std::ranges::set_union(a.layers, b.layers, std::back_inserter(all.layers));
  return all;
}

FeatureShare::FeatureShare(const FeatureTaps& own, const FeatureTaps& all) : count_(all.count()) {
  for (size_t i = 0; i < all.layers.size(); ++i) {
    if (std::ranges::binary_search(own.layers, all.layers[i])) parts_.push_back(static_cast<int64_t>(i));
  }
  if (own.final_norm) parts_.push_back(count_ - 1);
}

std::span<const CommittedFeatures> FeatureShare::of(std::span<const CommittedFeatures> committed) {
  if (std::ssize(parts_) == count_) return committed;
  features_.clear();
  size_t rows = 0;
  for (const CommittedFeatures& features : committed) {
    const auto size = static_cast<size_t>(features.size / count_);
    for (size_t i = 0; i < features.rows.size(); ++i) {
      for (const int64_t part : parts_) {
        const auto values = features.at(i).subspan(static_cast<size_t>(part) * size, size);
        features_.insert(features_.end(), values.begin(), values.end());
      }
    }
    rows = std::max(rows, features.rows.size());
  }
  if (rows_.size() < rows) {
    rows_.resize(rows);
    std::iota(rows_.begin(), rows_.end(), 0);
  }
  committed_.assign(committed.begin(), committed.end());
  const float* next = features_.data();
  for (CommittedFeatures& features : committed_) {
    features.features = next;
    features.size = features.size / count_ * std::ssize(parts_);
    next += std::ssize(features.rows) * features.size;
    features.rows = std::span(rows_).first(features.rows.size());
  }
  return committed_;
}

}  // namespace outrider
