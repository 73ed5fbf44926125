// SPDX-License-Identifier: Apache-2.0
#include "formats/random_model.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/counter_rng.h"
#include "base/quote.h"
#include "formats/families.h"
#include "formats/model_tensors.h"
#include "tokenizer/byte_mapping.h"

namespace outrider {
namespace {

constexpr std::string_view kPrefix = "shape:";
constexpr int64_t kBytePieces = 256;
// The number of different blocks of the random bytes that tensors start at.
constexpr uint64_t kOffsets = 4096;

struct NamedShape {
  std::string_view name;
  std::string_view family;
  int64_t hidden, layers, heads, kv_heads, ffn, vocabulary, context;
  bool tied;
  int64_t head_dim = 0;  // 0: hidden / heads
  int64_t experts = 0;   // in each layer; 0: none
  int64_t used_experts = 0;
  int64_t expert_ffn = 0;
  // The kinds of layers in turn, a: attention, c: short convolution, d: gated delta net; empty: attention.
  std::string_view kinds = "";
  int64_t shared_ffn = 0;  // of the dense MLP beside experts, in all layers but the first, which has none
};

// Shapes as published, except llama-25m, which has the size of a draft model, and moe-20m, a mixture for
// trials.
constexpr std::array kShapes = {
    NamedShape{"llama-25m", "llama", 384, 7, 6, 6, 1024, 32000, 2048, true},
    NamedShape{"moe-20m", "qwen3_moe", 256, 8, 8, 2, 768, 32000, 2048, true, 32, 16, 4, 96},
    NamedShape{"llama-68m", "llama", 768, 2, 12, 12, 3072, 32000, 2048, false},
    NamedShape{"smollm2-135m", "llama", 576, 30, 9, 3, 1536, 49152, 8192, true},
    NamedShape{"llama-160m", "llama", 768, 12, 12, 12, 3072, 32000, 2048, false},
    NamedShape{"qwen2.5-0.5b", "qwen2", 896, 24, 14, 2, 4864, 151936, 32768, true},
    NamedShape{"llama-1b", "llama", 2048, 22, 32, 4, 5632, 32000, 2048, false},
    NamedShape{"llama-3.2-1b", "llama", 2048, 16, 32, 8, 8192, 128256, 131072, true},
    NamedShape{"llama-8b", "llama", 4096, 32, 32, 8, 14336, 128256, 131072, false},
    NamedShape{"gpt-oss-20b", "gpt_oss", 2880, 24, 64, 8, 2880, 201088, 131072, false, 64, 32, 4, 2880},
    NamedShape{"qwen3-30b-a3b", "qwen3_moe", 2048, 48, 32, 4, 6144, 151936, 40960, false, 128, 128, 8, 768},
    NamedShape{"deepseek-v2-lite", "deepseek_v2", 2048, 27, 16, 16, 10944, 102400, 163840, false, 0, 64, 6,
               1408, "", 2816},
    NamedShape{"lfm2-1.2b", "lfm2", 2048, 16, 32, 8, 8192, 65536, 128000, true, 64, 0, 0, 0,
               "ccaccaccacacacac"},
    NamedShape{"qwen3.5-9b", "qwen3_5", 4096, 32, 16, 4, 12288, 248320, 262144, false, 256, 0, 0, 0, "ddda"},
};

// Fixing some of the random bits makes usable numbers: floats keep sign and mantissa and share one exponent,
// blocks get small half-precision scales. Scales of Q4_0 have both signs, because its numbers are negative on
// average: otherwise all rows would become alike by layers. The fixed `words` are at `offset` of every block.
struct Fixture {
  DType dtype;
  int64_t offset;
  int words;      // number of 16-bit words
  uint16_t keep;  // mask of the bits that stay random
  uint16_t set;   // bits that are set
};

constexpr std::array kFixtures = {
    Fixture{DType::kF32, 2, 1, 0x807F, 121 << 7},     // +-[2^-6, 2^-5)
    Fixture{DType::kBF16, 0, 1, 0x807F, 121 << 7},    // +-[2^-6, 2^-5)
    Fixture{DType::kF16, 0, 1, 0x83FF, 9 << 10},      // +-[2^-6, 2^-5)
    Fixture{DType::kQ8_0, 0, 1, 0x00FF, 0x0C00},      // scale 2^-12..: times +-127
    Fixture{DType::kQ4_0, 0, 1, 0x80FF, 0x1C00},      // scale +-2^-8..: times -8..7
    Fixture{DType::kQ4_1, 0, 1, 0x00FF, 0x1800},      // 2^-9..: times 0..15
    Fixture{DType::kQ4_1, 2, 1, 0x00FF, 0xA400},      // plus -2^-6..
    Fixture{DType::kQ5_0, 0, 1, 0x00FF, 0x1400},      // 2^-10..: times -16..15
    Fixture{DType::kQ5_1, 0, 1, 0x00FF, 0x1400},      // 2^-10..: times 0..31
    Fixture{DType::kQ5_1, 2, 1, 0x00FF, 0xA400},      // plus -2^-6..
    Fixture{DType::kQ2_K, 80, 2, 0x00FF, 0x0C00},     // 2^-12..: times 0..15 times 0..3
    Fixture{DType::kQ3_K, 108, 1, 0x00FF, 0x0800},    // 2^-13..: times -32..31 times -4..3
    Fixture{DType::kQ4_K, 0, 2, 0x00FF, 0x0200},      // 2^-15: times 0..63 times 0..15
    Fixture{DType::kQ5_K, 0, 2, 0x00FF, 0x0100},      // 2^-16: times 0..63 times 0..31
    Fixture{DType::kQ6_K, 208, 1, 0x00FF, 0x0080},    // 2^-17: times +-127 times -32..31
    Fixture{DType::kIQ1_S, 0, 1, 0x00FF, 0x1400},     // 2^-10..: times 1..15 times +-9/8
    Fixture{DType::kIQ1_M, 48, 4, 0x0FFF, 0x1000},    // 2^-11: times 1..15 times +-9/8
    Fixture{DType::kIQ2_XXS, 0, 1, 0x00FF, 0x0800},   // 2^-13..: times 1/8..4 times +-43
    Fixture{DType::kIQ2_XS, 0, 1, 0x00FF, 0x0800},    // 2^-13..: times 1/8..4 times +-43
    Fixture{DType::kIQ2_S, 0, 1, 0x00FF, 0x0800},     // 2^-13..: times 1/8..4 times +-43
    Fixture{DType::kIQ3_XXS, 0, 1, 0x00FF, 0x0200},   // 2^-15..: times 1/4..8 times +-62
    Fixture{DType::kIQ3_S, 0, 1, 0x00FF, 0x0200},     // 2^-15..: times 1..31 times +-15
    Fixture{DType::kIQ4_NL, 0, 1, 0x00FF, 0x0C00},    // 2^-12..: times +-127
    Fixture{DType::kIQ4_XS, 0, 1, 0x00FF, 0x0080},    // 2^-17: times -32..31 times +-127
    Fixture{DType::kTQ1_0, 52, 1, 0x00FF, 0x2400},    // 2^-6..: times -1..1
    Fixture{DType::kTQ2_0, 64, 1, 0x00FF, 0x2400},    // 2^-6..: times -1..2
    Fixture{DType::kMXFP4, 0, 1, 0xFF03, 0x0074},     // 2^-12..2^-9: times +-12; the upper byte is codes
    Fixture{DType::kNVFP4, 0, 2, 0x0707, 0x0000},     // 0..7 * 2^-10: times +-12
    Fixture{DType::kNVFP4F, 2, 1, 0x0000, 117 << 7},  // 2^-10..
    Fixture{DType::kNVFP4F, 4, 2, 0x0707, 0x3838},    // times 1..2 times +-12
    Fixture{DType::kF8, 2, 1, 0x007F, 113 << 7},      // 2^-14..: times +-480
};

void fill_random(DType dtype, Buffer& buffer) {
  auto words = buffer.as<uint64_t>();
  for (size_t i = 0; i < words.size(); ++i) words[i] = mix64(i);
  for (const Fixture& fixture : kFixtures) {
    if (fixture.dtype != dtype) continue;
    const auto step = static_cast<size_t>(block_bytes(dtype));
    const size_t end = buffer.size() / step * step;
    for (size_t at = static_cast<size_t>(fixture.offset); at < end; at += step) {
      for (int word = 0; word < fixture.words; ++word) {
        uint16_t bits;
        std::byte* place = buffer.data() + at + static_cast<size_t>(word) * sizeof(bits);
        std::memcpy(&bits, place, sizeof(bits));
        bits = static_cast<uint16_t>((bits & fixture.keep) | fixture.set);
        std::memcpy(place, &bits, sizeof(bits));
      }
    }
  }
}

TokenizerSpec numbered_tokens(int64_t count) {
  TokenizerSpec spec;
  for (int64_t id = 0; id < count; ++id) {
    const auto byte = static_cast<char>(id);
    spec.pieces.push_back(id < kBytePieces ? map_bytes({&byte, 1}) : "t" + std::to_string(id));
  }
  return spec;
}

struct ShapeRequest {
  ModelConfig config;
  DType weights = DType::kF32;
};

Result<ShapeRequest> parse_shape_path(const std::string& path) {
  const std::string text = path.substr(kPrefix.size());
  const size_t first = text.find(',');
  const size_t second = first == std::string::npos ? first : text.find(',', first + 1);
  if (second == std::string::npos) {
    return input_error(quote(path) +
                       ": expected shape:NAME,TYPE,VOCABULARY, as in shape:llama-1b,q4_0,32000");
  }
  ShapeRequest request;
  OUTRIDER_TRY(request.config, shape_config(std::string_view(text).substr(0, first)));
  const auto type = parse_dtype(std::string_view(text).substr(first + 1, second - first - 1));
  if (!type || *type >= DType::kI8) {  // these types do not occur in files
    return input_error(quote(path) + ": expected a stored weight type such as bf16, q8_0 or q4_0");
  }
  request.weights = *type;
  const char* end = text.data() + text.size();
  int64_t& vocabulary = request.config.vocab_size;
  const auto parsed = std::from_chars(text.data() + second + 1, end, vocabulary);
  if (parsed.ec != std::errc() || parsed.ptr != end || vocabulary < kBytePieces) {
    return input_error(quote(path) + ": expected a vocabulary of " + std::to_string(kBytePieces) +
                       " tokens or more");
  }
  OUTRIDER_RETURN_IF_ERROR(validate(request.config));
  return request;
}

// The memory that the views of a random model point into.
struct RandomStorage {
  Buffer random;
  Buffer ones, zeros,
      faint;  // f32, for norms and biases; faint: norms before attention where there are experts
};

// Random attention is nearly a mean over the context, and nearly the same for all rows. Unless its outputs
// are small beside the embeddings, rows become alike layer by layer, and choose the same experts.
constexpr float kFaint = 1.0F / 16;

const Buffer& numbers_for(const ExpectedTensor& tensor, bool has_experts, const RandomStorage& storage) {
  if (tensor.name.ends_with(".bias")) return storage.zeros;
  return has_experts && tensor.name.ends_with("input_layernorm.weight") ? storage.faint : storage.ones;
}

// The bytes of the largest matrix. Error: rows that the type's blocks do not divide.
Result<int64_t> largest_matrix_bytes(const std::vector<ExpectedTensor>& tensors, DType dtype) {
  int64_t largest = 0;
  for (const ExpectedTensor& tensor : tensors) {
    if (tensor.shape.size() < 2 || tensor.is_plain) continue;
    const TensorView view{dtype, tensor.shape, nullptr};
    if (view.cols() % block_elements(dtype) != 0) {
      return input_error("rows of " + std::to_string(view.cols()) + " numbers are no whole blocks of " +
                         std::string(dtype_name(dtype)) + "; choose another shape or weight type");
    }
    largest = std::max(largest, view.bytes());
  }
  return largest;
}

// Gives `model` a view into `storage` for each expected tensor.
void attach_views(const std::vector<ExpectedTensor>& expected, DType dtype, const RandomStorage& storage,
                  ModelFile& model) {
  uint64_t matrices = 0;
  for (const ExpectedTensor& tensor : expected) {
    TensorView view{DType::kF32, tensor.shape, nullptr};
    if (tensor.shape.size() == 1 || tensor.is_plain) {
      view.data = numbers_for(tensor, model.config.experts.count > 0, storage).data();
    } else {
      const auto block = static_cast<int64_t>(mix64(matrices++) % kOffsets);
      view.dtype = dtype;
      view.data = storage.random.data() + block * block_bytes(dtype);
    }
    model.tensors.emplace(tensor.name, std::move(view));
  }
}

// Layers in the order of the shape's kinds, with the sizes of the published models.
void set_kinds_of(const NamedShape& shape, const ModelFamily& family, ModelConfig& config) {
  if (shape.kinds.empty()) return;
  config.layer_traits.resize(shape.kinds.size());
  for (size_t i = 0; i < shape.kinds.size(); ++i) {
    if (shape.kinds[i] != 'a') config.layer_traits[i].kind = family.other_layers;
  }
  family.other_layers->set_published(&config);
}

// Layers of the first are dense, and the others have experts beside a dense MLP, or all have only experts.
void set_experts_of(const NamedShape& shape, ModelConfig& config) {
  if (shape.experts == 0) return;
  config.experts.count = shape.experts;
  config.experts.used = shape.used_experts;
  config.experts.ffn_size = shape.expert_ffn;
  config.layer_traits.front().mlp = &kExpertsKind;
  if (shape.shared_ffn == 0) return;
  config.layer_traits.assign(static_cast<size_t>(shape.layers),
                             {.ffn_size = shape.shared_ffn, .mlp = &kExpertsAndDenseKind});
  config.layer_traits.front() = {};
}

ModelConfig config_of(const NamedShape& shape) {
  const ModelFamily& family = *find_family(shape.family);
  ModelConfig config;
  config.family = shape.family;
  config.vocab_size = shape.vocabulary;
  config.hidden_size = shape.hidden;
  config.layer_count = shape.layers;
  config.head_count = shape.heads;
  config.kv_head_count = shape.kv_heads;
  config.head_dim = shape.head_dim != 0 ? shape.head_dim : shape.hidden / shape.heads;
  config.ffn_size = shape.ffn;
  config.max_context = shape.context;
  config.tied_embeddings = shape.tied;
  config.qkv_bias = family.qkv_bias == Use::kAlways;
  config.qk_norm = family.qk_norm == Use::kAlways ? family.qk_norm_kind : QkNorm::kNone;
  config.mlp = family.mlp;
  config.experts = family.experts;
  if (family.rotated_part != 1) {
    config.ropes.front().rotated_dim =
        static_cast<int64_t>(static_cast<double>(config.head_dim) * family.rotated_part);
  }
  set_kinds_of(shape, family, config);
  set_experts_of(shape, config);
  if (family.layers->set_published != nullptr) family.layers->set_published(&config);
  return config;
}

Result<int64_t> parse_layers(std::string_view text, const NamedShape& shape) {
  int64_t layers = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), layers);
  if (parsed.ec == std::errc() && parsed.ptr == text.data() + text.size() && layers >= 1 &&
      layers <= shape.layers)
    return layers;
  return usage_error("expected 1 to " + std::to_string(shape.layers) + " layers after " +
                     std::string(shape.name) + "@, found " + quote(text));
}

}  // namespace

Result<ModelConfig> shape_config(std::string_view name) {
  const size_t at = name.find('@');
  std::string known;
  for (const NamedShape& shape : kShapes) {
    known += (known.empty() ? "" : ", ") + std::string(shape.name);
    if (shape.name != name.substr(0, at)) continue;
    ModelConfig config = config_of(shape);
    if (at != std::string_view::npos) {
      OUTRIDER_TRY(config.layer_count, parse_layers(name.substr(at + 1), shape));
    }
    return config;
  }
  return usage_error("unknown shape " + quote(name) + ", expected one of " + known);
}

std::filesystem::path shape_path(std::string_view name, DType weights, int64_t vocab_size) {
  return std::string(kPrefix) + std::string(name) + "," + std::string(dtype_name(weights)) + "," +
         std::to_string(vocab_size);
}

std::filesystem::path draft_of_shape(const std::filesystem::path& target, std::string_view name) {
  const std::string& text = target.native();
  return std::string(kPrefix) + std::string(name) + text.substr(std::min(text.find(','), text.size()));
}

bool is_shape_path(const std::filesystem::path& path) { return path.native().starts_with(kPrefix); }

Result<ModelFile> open_shape(const std::filesystem::path& path) {
  OUTRIDER_TRY(ShapeRequest request, parse_shape_path(path.native()));
  ModelFile model;
  model.path = path;
  model.format = "random";
  model.config = std::move(request.config);
  model.tokenizer = numbered_tokens(model.config.vocab_size);

  const std::vector<ExpectedTensor> expected = expected_tensors(model.config);
  const DType dtype = request.weights;
  auto storage = std::make_shared<RandomStorage>();
  OUTRIDER_TRY(const int64_t largest, largest_matrix_bytes(expected, dtype));
  const int64_t bytes = largest + static_cast<int64_t>(kOffsets) * block_bytes(dtype);
  storage->random = Buffer(static_cast<size_t>((bytes + 7) / 8 * 8));
  fill_random(dtype, storage->random);
  int64_t longest = 0;
  for (const ExpectedTensor& tensor : expected) {
    const int64_t numbers = tensor.shape.front() * (tensor.is_plain ? tensor.shape.back() : 1);
    longest = std::max(longest, numbers);
  }
  storage->ones = Buffer(static_cast<size_t>(longest) * sizeof(float));
  storage->zeros = Buffer(static_cast<size_t>(longest) * sizeof(float));
  storage->faint = Buffer(static_cast<size_t>(longest) * sizeof(float));
  std::ranges::fill(storage->ones.as<float>(), 1.0F);
  std::ranges::fill(storage->faint.as<float>(), kFaint);

  attach_views(expected, dtype, *storage, model);
  model.storage = std::move(storage);
  return model;
}

}  // namespace outrider
