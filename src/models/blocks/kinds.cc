// SPDX-License-Identifier: Apache-2.0
#include "models/blocks/kinds.h"

#include <algorithm>
#include <span>

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

struct MixerKind {
  const LayerKind* kind;
  std::unique_ptr<Block> (*make)(const BlockSite& site);
};

constexpr MixerKind kMixers[] = {
    {&kAttention, make_attention},
    {&kLatentAttention, make_latent_attention},
    {&kShortConvolution, make_short_convolution},
    {&kDeltaNet, make_delta_net},
};

struct MlpKind {
  MlpParts parts;
  std::unique_ptr<Block> (*make)(const BlockSite& site);
};

constexpr MlpKind kMlps[] = {
    {MlpParts::kDense, make_dense_mlp},
    {MlpParts::kExperts, [](const BlockSite& site) { return make_experts(site, nullptr); }},
    {MlpParts::kBoth, [](const BlockSite& site) { return make_experts(site, make_dense_mlp(site)); }},
};

template <typename Row, typename Key>
std::unique_ptr<Block> make(std::span<const Row> rows, Key Row::*column, Key key, const BlockSite& site) {
  const auto row = std::ranges::find(rows, key, column);
  OUTRIDER_CHECK(row != rows.end());
  return row->make(site);
}

}  // namespace

std::unique_ptr<Block> make_mixer(const BlockSite& site) {
  return make<MixerKind>(kMixers, &MixerKind::kind, site.config.traits_of(site.layer).kind, site);
}

std::unique_ptr<Block> make_mlp(const BlockSite& site) {
  return make<MlpKind>(kMlps, &MlpKind::parts, site.config.traits_of(site.layer).mlp, site);
}

}  // namespace outrider
