// SPDX-License-Identifier: Apache-2.0
// Model::load(): from the family of a file to its network. All families share the Decoder; a family with
// other layers gets a network in a separate file, chosen here.
#include <memory>
#include <new>
#include <string>
#include <string_view>

#include "base/check.h"
#include "formats/families.h"
#include "models/backend/backend_kinds.h"
#include "models/decoder.h"
#include "models/decoder_weights.h"
#include "models/model.h"

namespace outrider {
namespace {

Status check_use(const ModelFile& file, std::string_view part, Use use, bool is_there) {
  if (use == Use::kOptional || is_there == (use == Use::kAlways)) return {};
  return input_error(file.path.string() + ": expected a " + file.config.family + " model " +
                     (is_there ? "without " : "with ") + std::string(part) + ", found one " +
                     (is_there ? "with it" : "without") + "; this variant is not supported");
}

// Error: the config has a part that its family never has, or lacks one that it always has.
Status check_parts(const ModelFile& file, const ModelFamily& family) {
  const ModelConfig& config = file.config;
  OUTRIDER_RETURN_IF_ERROR(
      check_use(file, "biases of queries, keys and values", family.qkv_bias, config.qkv_bias));
  OUTRIDER_RETURN_IF_ERROR(
      check_use(file, "a bias of the attention output", family.output_bias, config.output_bias));
  OUTRIDER_RETURN_IF_ERROR(check_use(file, "biases of the MLP", family.mlp_bias, config.mlp.bias));
  return check_use(file, "norms of queries and keys", family.qk_norm, config.qk_norm != QkNorm::kNone);
}

// The part of the model that ranks cannot divide with the bits of one rank; empty: they can divide all.
std::string_view undivided_part(const ModelConfig& config, const ModelPart& part) {
  if (config.layer_inputs.size > 0) return "inputs of every layer";
  for (const LayerBlocks& layer : make_layers(config, part.shard)) {
    for (const auto* block : {&layer.mixer, &layer.mlp}) {
      if (!(*block)->undivided().empty()) return (*block)->undivided();
    }
  }
  return {};
}

// Error: the model cannot be divided like that.
Status check_division(const ModelConfig& config, const ModelPart& part) {
  if (part.is_whole()) return {};
  if (const std::string_view found = undivided_part(config, part); !found.empty()) {
    return usage_error("ranks can share models whose layers are attention and an MLP or experts, found " +
                       std::string(found) + " in this " + config.family +
                       " model; leave out --tensor-parallel and --pipeline-parallel");
  }
  if (part.stage_count > config.layer_count) {
    return usage_error("expected at most " + std::to_string(config.layer_count) +
                       " pipeline stages, one for each layer, found " + std::to_string(part.stage_count) +
                       "; lower --pipeline-parallel");
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Model>> Model::load(const ModelFile& file, const ModelOptions& options) {
  OUTRIDER_CHECK(options.kernels != nullptr && options.pool != nullptr);
  const ModelFamily* family = find_family(file.config.family);
  if (family == nullptr) {
    return input_error(file.path.string() + ": expected a model of the family " +
                       list_families(&ModelFamily::name) + ", found " + file.config.family);
  }
  OUTRIDER_RETURN_IF_ERROR(validate(file.config));
  OUTRIDER_RETURN_IF_ERROR(check_parts(file, *family));
  OUTRIDER_RETURN_IF_ERROR(check_division(file.config, options.part));
  try {
    OUTRIDER_TRY(auto backend,
                 make_backend(file.config, options, [&] { return load_decoder_weights(file, options); }));
    return std::unique_ptr<Model>(std::make_unique<Decoder>(file.config, options, std::move(backend)));
  } catch (const std::bad_alloc&) {
    return resource_error(
        file.path.string() +
        ": not enough memory for its weights; choose a smaller model, or a smaller weight type");
  }
}

}  // namespace outrider
