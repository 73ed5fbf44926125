// SPDX-License-Identifier: Apache-2.0
#include "models/decoder_weights.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <string>
#include <utility>

#include "models/blocks/kinds.h"

namespace outrider {
namespace {

Status check_weight_type(std::optional<DType> type) {
  if (!type) return {};
  switch (*type) {
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16:
    case DType::kF8:
    case DType::kQ8_0:
    case DType::kQ4_0:
    case DType::kI8:
      return {};
    default:
      return usage_error("expected a weight type of f32, f16, bf16, f8, i8, q8_0 or q4_0, found " +
                         std::string(dtype_name(*type)) + "; no conversion to it exists");
  }
}

Status load_norms(WeightLoader& loader, const ModelConfig& config, const LayerPlace& place,
                  LayerBlocks& layer) {
  const auto read = [&](const char* name, int64_t size, Norm& norm) {
    return load_norm(loader, config.norm, place.prefix + name, size, norm);
  };
  const int64_t hidden = config.hidden_size;
  if (config.norm.has_inputs() && place.has_input_norm)
    OUTRIDER_RETURN_IF_ERROR(read("input_layernorm", place.input_size, layer.mixer_norm));
  if (config.has_mlp_norm())
    OUTRIDER_RETURN_IF_ERROR(read("post_attention_layernorm", hidden, layer.mlp_norm));
  if (!config.norm.has_outputs()) return {};
  OUTRIDER_RETURN_IF_ERROR(read("post_self_attn_layernorm", hidden, layer.mixer_output_norm));
  return read("post_mlp_layernorm", hidden, layer.mlp_output_norm);
}

Status load_layer_end(WeightLoader& loader, const ModelConfig& config, const LayerPlace& place,
                      LayerBlocks& layer) {
  const std::string& prefix = place.prefix;
  const int64_t size = config.layer_inputs.size;
  if (config.layer_scalars) {
    std::vector<float> scalar;
    OUTRIDER_RETURN_IF_ERROR(loader.read_vector(prefix + "layer_scalar.weight", 1, scalar));
    layer.scalar = scalar.front();
  }
  if (size == 0) return {};
  LayerInput& input = layer.input;
  OUTRIDER_RETURN_IF_ERROR(
      loader.plan({{prefix + "per_layer_input_gate", size}}, config.hidden_size, /*bias=*/false, input.gate));
  OUTRIDER_RETURN_IF_ERROR(loader.plan({{prefix + "per_layer_projection", config.hidden_size}}, size,
                                       /*bias=*/false, input.projection));
  return load_norm(loader, config.norm, prefix + "post_per_layer_input_norm", config.hidden_size, input.norm);
}

Status load_layer_inputs(WeightLoader& loader, const ModelConfig& config, LayerInputTable& inputs) {
  const int64_t size = config.layer_inputs.size;
  const int64_t all_layers = config.layer_count * size;
  OUTRIDER_RETURN_IF_ERROR(loader.plan_table({"model.embed_tokens_per_layer", config.layer_inputs.vocab_size},
                                             all_layers, inputs.table));
  OUTRIDER_RETURN_IF_ERROR(loader.plan({{"model.per_layer_model_projection", all_layers}}, config.hidden_size,
                                       /*bias=*/false, inputs.projection));
  return load_norm(loader, config.norm, "model.per_layer_projection_norm", size, inputs.norm);
}

}  // namespace

void LayerBlocks::list(WeightList& weights) const {
  mixer->list(weights);
  mlp->list(weights);
  for (const Projection* projection : {&input.gate, &input.projection})
    weights.projections.push_back(projection);
  for (const Norm* norm : {&mixer_norm, &mixer_output_norm, &mlp_norm, &mlp_output_norm, &input.norm})
    weights.norms.push_back(norm);
}

WeightList DecoderWeights::list() const {
  WeightList weights{.projections = {&lm_head, &input_projection, &output_projection},
                     .norms = {&final_norm},
                     .numbers = {}};
  if (layer_inputs) {
    weights.projections.push_back(&layer_inputs->projection);
    weights.norms.push_back(&layer_inputs->norm);
  }
  for (const LayerBlocks& layer : layers) layer.list(weights);
  return weights;
}

std::vector<const PackedMatrix*> DecoderWeights::tables() const {
  std::vector<const PackedMatrix*> tables;
  for (const auto* rows : {&table, &positions}) {
    if (*rows) tables.push_back(&**rows);
  }
  if (layer_inputs) tables.push_back(&layer_inputs->table);
  return tables;
}

int64_t DecoderWeights::parameter_count() const {
  int64_t count = list().parameter_count();
  for (const PackedMatrix* rows : tables()) count += rows->n * rows->k;
  return count;
}

int64_t DecoderWeights::bytes() const {
  int64_t total = list().bytes();
  for (const PackedMatrix* rows : tables()) total += static_cast<int64_t>(rows->data.size());
  return total;
}

int64_t DecoderWeights::shared_bytes() const {
  int64_t total = list().bytes();
  for (const LayerBlocks& layer : layers)
    total -= layer.mlp->part_bytes() * std::ssize(layer.mlp->part_matrices());
  return total;
}

int64_t DecoderWeights::row_bytes() const {
  int64_t total = shared_bytes();
  for (const LayerBlocks& layer : layers) total += layer.mlp->part_bytes() * layer.mlp->used_parts();
  return total;
}

std::vector<LayerBlocks> make_layers(const ModelConfig& config, Shard shard) {
  std::vector<LayerBlocks> layers(static_cast<size_t>(config.layer_count));
  for (int64_t i = 0; i < config.layer_count; ++i) {
    const BlockSite site{config, i, shard};
    const LayerTraits& traits = config.traits_of(i);
    layers[static_cast<size_t>(i)].mixer = make_block(*traits.kind, site);
    layers[static_cast<size_t>(i)].mlp = make_block(*traits.mlp, site);
  }
  return layers;
}

int64_t cache_bytes_per_token(const ModelConfig& config, DType type) {
  int64_t bytes = 0;
  for (int64_t i = 0; i < config.layer_count; ++i) bytes += cache_bytes_per_token(config, type, i);
  return bytes;
}

int64_t cache_bytes_per_token(const ModelConfig& config, DType type, int64_t layer) {
  const BlockCache cache = make_block(*config.traits_of(layer).kind, {config, layer, {}})->cache();
  const KvHeads heads = cache.heads.value_or(KvHeads{});
  return (cache.values_are_keys ? 1 : 2) * heads.count * cached_head_bytes(type, heads.dim);
}

Status load_layer(WeightLoader& loader, const ModelConfig& config, const LayerPlace& place,
                  LayerBlocks& layer) {
  OUTRIDER_RETURN_IF_ERROR(load_norms(loader, config, place, layer));
  OUTRIDER_RETURN_IF_ERROR(layer.mixer->load(loader, config, place));
  OUTRIDER_RETURN_IF_ERROR(load_layer_end(loader, config, place, layer));
  return layer.mlp->load(loader, config, place);
}

namespace {

// The embedding of the first stage and the output head of the last, which may be one matrix.
Status load_vocabulary(WeightLoader& loader, const ModelConfig& config, DecoderWeights& weights) {
  const ModelPart& part = loader.part();
  const std::string embedding = "model.embed_tokens";
  WeightLoader::Part table{embedding, config.vocab_size};
  WeightLoader::Part output{config.tied_embeddings ? embedding : "lm_head", config.vocab_size};
  output.is_table = true;
  if (!part.shard.is_whole()) {
    table.rows = output.rows = {part.shard.of(config.vocab_size)};
    weights.lm_head.cut = {.outputs = part.shard.cut(config.vocab_size), .only_first = true};
  }
  if (!config.tied_embeddings && part.is_first_stage())
    OUTRIDER_RETURN_IF_ERROR(loader.plan_table(table, config.token_size(), weights.table.emplace()));
  if (config.tied_embeddings ? part.is_first_stage() || part.is_last_stage() : part.is_last_stage())
    OUTRIDER_RETURN_IF_ERROR(loader.plan({output}, config.token_size(), /*bias=*/false, weights.lm_head));
  weights.lm_head.name = "output head";
  return {};
}

// The parts outside of layers.
Status load_ends(WeightLoader& loader, const ModelConfig& config, DecoderWeights& weights) {
  const int64_t hidden = config.hidden_size;
  const int64_t token_size = config.token_size();
  if (config.learned_positions.count > 0) {
    OUTRIDER_RETURN_IF_ERROR(loader.plan_table({"model.embed_positions", config.learned_positions.rows()},
                                               hidden, weights.positions.emplace()));
  }
  if (token_size != hidden) {
    OUTRIDER_RETURN_IF_ERROR(
        loader.plan({{"model.project_in", hidden}}, token_size, /*bias=*/false, weights.input_projection));
    OUTRIDER_RETURN_IF_ERROR(
        loader.plan({{"model.project_out", token_size}}, hidden, /*bias=*/false, weights.output_projection));
  }
  if (config.norm.has_final)
    OUTRIDER_RETURN_IF_ERROR(load_norm(loader, config.norm, "model.norm", hidden, weights.final_norm));
  return load_vocabulary(loader, config, weights);
}

// Where the parts of a layer end that are read by themselves, in matrices planned: all but the parts that
// rows choose from, which are planned last, then each of these parts.
void list_ends(const LayerBlocks& layer, size_t planned, std::vector<size_t>& ends) {
  const std::vector<size_t> counts = layer.mlp->part_matrices();
  size_t end = planned - std::accumulate(counts.begin(), counts.end(), size_t{0});
  ends.push_back(end);
  for (const size_t count : counts) ends.push_back(end += count);
}

Result<std::unique_ptr<WeightStream>> open_stream(WeightLoader& loader,
                                                  const std::vector<LayerBlocks>& layers,
                                                  std::span<const size_t> ends, bool plans_only) {
  OUTRIDER_TRY(StoredWeights stored, loader.store_all(ends));
  std::vector<StoredPart> rest;
  ExpertStream::Experts experts;
  int64_t used = 0;
  auto part = stored.parts.begin();
  for (const LayerBlocks& layer : layers) {
    rest.push_back(std::move(*part++));
    std::vector<StoredPart>& own = experts.emplace_back();
    for (size_t i = layer.mlp->part_matrices().size(); i > 0; --i) own.push_back(std::move(*part++));
    used = std::max(used, layer.mlp->used_parts());
  }
  if (plans_only) return WeightStream::plan_of(rest, experts, used);
  return WeightStream::open(stored.path, std::move(rest), std::move(experts), used);
}

}  // namespace

Result<DecoderWeights> load_decoder_weights(const ModelFile& file, const ModelOptions& options) {
  OUTRIDER_RETURN_IF_ERROR(check_weight_type(options.weights));
  const ModelConfig& config = file.config;
  WeightLoader loader(file, options);
  DecoderWeights weights;
  weights.layers = make_layers(config, options.part.shard);
  std::vector<size_t> ends;
  const Range own = options.own_layers(config.layer_count);
  for (int64_t i = own.begin; i < own.end; ++i) {
    const LayerPlace place{
        .prefix = "model.layers." + std::to_string(i) + ".", .index = i, .input_size = config.hidden_size};
    LayerBlocks& layer = weights.layers[static_cast<size_t>(i)];
    OUTRIDER_RETURN_IF_ERROR(load_layer(loader, config, place, layer));
    list_ends(layer, loader.planned(), ends);
  }
  if (config.layer_inputs.size != 0)
    OUTRIDER_RETURN_IF_ERROR(load_layer_inputs(loader, config, weights.layer_inputs.emplace()));
  OUTRIDER_RETURN_IF_ERROR(load_ends(loader, config, weights));
  if (options.streams_layers) {
    OUTRIDER_TRY(weights.stream, open_stream(loader, weights.layers, ends, options.plans_only));
  } else {
    OUTRIDER_TRY(weights.memory, loader.pack_all());
  }
  return weights;
}

}  // namespace outrider
