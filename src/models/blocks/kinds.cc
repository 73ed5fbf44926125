// SPDX-License-Identifier: Apache-2.0
#include "models/blocks/kinds.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"
#include "formats/kinds/delta_net.h"
#include "formats/kinds/latent_attention.h"
#include "formats/kinds/short_convolution.h"
#include "models/blocks/attention/attention.h"
#include "models/blocks/delta_net/delta_net.h"
#include "models/blocks/dense_mlp/dense_mlp.h"
#include "models/blocks/experts/experts.h"
#include "models/blocks/latent_attention/latent_attention.h"
#include "models/blocks/short_convolution/short_convolution.h"

namespace outrider {
namespace {

struct BlockRow {
  const LayerKind* kind;
  std::unique_ptr<Block> (*make)(const BlockSite& site);
};

constexpr BlockRow kKinds[] = {
    {&kAttentionKind, make_attention},
    {&kLatentAttentionKind, make_latent_attention},
    {&kShortConvolutionKind, make_short_convolution},
    {&kDeltaNetKind, make_delta_net},
    {&kDenseMlpKind, make_dense_mlp},
    {&kExpertsKind, make_experts},
    {&kExpertsAndDenseKind, make_experts_and_dense},
};

}  // namespace

std::unique_ptr<Block> make_block(const LayerKind& kind, const BlockSite& site) {
  const auto row = std::ranges::find(kKinds, &kind, &BlockRow::kind);
  OUTRIDER_CHECK(row != std::end(kKinds));
  return row->make(site);
}

}  // namespace outrider
