// SPDX-License-Identifier: Apache-2.0
// Every kind of block, in small models of all families.
#include "models/blocks/kinds.h"

#include <gtest/gtest.h>

#include <set>

#include "models/decoder_weights.h"
#include "models/model_test_data.h"

namespace outrider {
namespace {

int64_t numbers_of_layer(const ModelFile& file, int64_t layer) {
  const std::string prefix = "model.layers." + std::to_string(layer) + ".";
  int64_t numbers = 0;
  for (const auto& [name, tensor] : file.tensors) {
    if (name.starts_with(prefix)) numbers += tensor.rows() * tensor.cols();
  }
  return numbers;
}

// Memory, reservation and backends rely on these lists.
TEST(Blocks, ListAllWeightsOfTheirLayers) {
  std::set<const LayerKind*> kinds;
  for (const std::string& name : all_models()) {
    // Norms of these families without weights in the file get ones.
    if (name.starts_with("gemma4") || name.starts_with("llama4")) continue;
    SCOPED_TRACE(name);
    const auto file = open_model(model_data(name));
    ASSERT_TRUE(file.ok()) << file.error().message;
    ThreadPool pool(1);
    const auto weights =
        load_decoder_weights(*file, {.kernels = *select_kernels(""), .pool = &pool, .weights = {}});
    ASSERT_TRUE(weights.ok()) << weights.error().message;
    for (int64_t i = 0; i < file->config.layer_count; ++i) {
      const LayerBlocks& layer = weights->layers[static_cast<size_t>(i)];
      WeightList list;
      layer.list(list);
      const int64_t scalar = file->config.layer_scalars ? 1 : 0;
      EXPECT_EQ(list.parameter_count() + scalar, numbers_of_layer(*file, i)) << i;
      kinds.insert({file->config.traits_of(i).kind, file->config.traits_of(i).mlp});
    }
  }
  EXPECT_EQ(kinds.size(), 7);
}

// A mixer reads entries of the cache or has a state, as its kind says.
TEST(Blocks, HaveTheCacheOfTheirKind) {
  for (const std::string& name : all_models()) {
    SCOPED_TRACE(name);
    const auto file = open_model(model_data(name));
    ASSERT_TRUE(file.ok()) << file.error().message;
    const std::vector<LayerBlocks> layers = make_layers(file->config);
    for (int64_t i = 0; i < file->config.layer_count; ++i) {
      const BlockCache cache = layers[static_cast<size_t>(i)].mixer->cache();
      EXPECT_EQ(cache.reads_entries, file->config.has_attention(i));
      EXPECT_EQ(cache.heads.has_value(), file->config.has_keys(i));
      EXPECT_NE(cache.state_size > 0, cache.reads_entries);
    }
  }
}

}  // namespace
}  // namespace outrider
