// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "outrider/drafter.h"

namespace outrider {

// The union of two sets of features.
FeatureTaps merge_features(const FeatureTaps& a, const FeatureTaps& b);

// One member's part of the features that several drafters tap together.
class FeatureShare {
 public:
  // `all` has everything that `own` has.
  FeatureShare(const FeatureTaps& own, const FeatureTaps& all);

  // The committed tokens with only the member's features, valid until the next call.
  std::span<const CommittedFeatures> of(std::span<const CommittedFeatures> committed);

 private:
  int64_t count_;               // parts of all features
  std::vector<int64_t> parts_;  // the parts that the member reads
  std::vector<float> features_;
  std::vector<int> rows_;
  std::vector<CommittedFeatures> committed_;
};

}  // namespace outrider
