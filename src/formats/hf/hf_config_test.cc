// SPDX-License-Identifier: Apache-2.0
#include "formats/hf/hf_config.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "formats/json_file.h"
#include "formats/json_object.h"
#include "formats/test_outcome.h"

namespace outrider {
namespace {

const char* const kConfigs = OUTRIDER_SOURCE_DIR "/tests/data/formats/configs.json";

struct ConfigCase {
  std::string name;
  std::string text;
  JsonObject expected;
};

// The cases of tests/data/formats/configs.json. The root is a list, which JsonFile refuses.
class HfConfigGoldenTest : public testing::Test {
 protected:
  HfConfigGoldenTest() : parser_(std::make_unique<simdjson::dom::parser>()) {}

  std::vector<ConfigCase> cases() {
    std::vector<ConfigCase> result;
    for (const simdjson::dom::element entry : simdjson::dom::array(parser_->load(kConfigs))) {
      result.push_back({std::string(std::string_view(entry["name"])),
                        std::string(std::string_view(entry["config"])),
                        JsonObject(entry["expected"], "expected")});
    }
    return result;
  }

 private:
  std::unique_ptr<simdjson::dom::parser> parser_;
};

std::string_view kind_name(RopeScalingKind kind) {
  if (kind == RopeScalingKind::kLlama3) return "llama3";
  return kind == RopeScalingKind::kLinear ? "linear" : "default";
}

TEST_F(HfConfigGoldenTest, AgreesWithTransformers) {
  size_t count = 0;
  for (const ConfigCase& golden : cases()) {
    SCOPED_TRACE(golden.name);
    const auto config = parse_hf_config(golden.text);
    ASSERT_TRUE(config.ok()) << config.error().message;
    const JsonObject& expected = golden.expected;
    EXPECT_EQ(config->family, **expected.string("family"));
    EXPECT_EQ(config->kv_head_count, **expected.integer("kv_head_count"));
    EXPECT_EQ(config->head_dim, **expected.integer("head_dim"));
    EXPECT_EQ(config->max_context, **expected.integer("max_context"));
    EXPECT_FLOAT_EQ(config->norm.epsilon, static_cast<float>(**expected.number("rms_epsilon")));
    EXPECT_EQ(config->ropes.front().theta, **expected.number("rope_theta"));
    EXPECT_EQ(kind_name(config->ropes.front().scaling.kind), **expected.string("rope_type"));
    EXPECT_EQ(config->ropes.front().scaling.factor, **expected.number("rope_factor"));
    EXPECT_EQ(config->ropes.front().scaling.original_context, **expected.integer("original_context"));
    EXPECT_EQ(config->layer_traits.front().window, **expected.integer("sliding_window"));
    EXPECT_EQ(config->tied_embeddings, **expected.boolean("tied_embeddings"));
    EXPECT_EQ(config->qkv_bias, **expected.boolean("qkv_bias"));
    EXPECT_EQ(config->output_bias, **expected.boolean("output_bias"));
    EXPECT_EQ(config->mlp.bias, **expected.boolean("mlp_bias"));
    EXPECT_EQ(config->qk_norm != QkNorm::kNone, **expected.boolean("qk_norm"));
    ++count;
  }
  EXPECT_GE(count, 15u);
}

// A valid configuration with `key` set to `value` (JSON text); an empty value leaves the key out.
std::string config_with(const std::vector<std::pair<std::string, std::string>>& changes) {
  std::vector<std::pair<std::string, std::string>> fields = {
      {"architectures", "[\"LlamaForCausalLM\"]"},
      {"vocab_size", "100"},
      {"hidden_size", "64"},
      {"num_hidden_layers", "2"},
      {"num_attention_heads", "4"},
      {"intermediate_size", "96"},
  };
  for (const auto& [key, value] : changes) {
    std::erase_if(fields, [&key = key](const auto& field) { return field.first == key; });
    if (!value.empty()) fields.emplace_back(key, value);
  }
  std::string text = "{";
  for (const auto& [key, value] : fields) text += (text.size() > 1 ? ",\"" : "\"") + key + "\":" + value;
  return text + "}";
}

TEST(HfConfigTest, StopTokensComeFromTheGenerationConfigFirst) {
  const std::string config = config_with({{"eos_token_id", "7"}});
  EXPECT_EQ(parse_hf_config(config)->stop_tokens, std::vector<TokenId>{7});
  EXPECT_EQ(parse_hf_config(config, "{}")->stop_tokens, std::vector<TokenId>{7});
  EXPECT_EQ(parse_hf_config(config, R"({"eos_token_id":[3,4]})")->stop_tokens, (std::vector<TokenId>{3, 4}));
  EXPECT_TRUE(parse_hf_config(config_with({}))->stop_tokens.empty());
  expect_refused(parse_hf_config(config, R"({"eos_token_id":[3,100]})"), "end-of-text id");
  expect_refused(parse_hf_config(config, "nonsense"), "generation_config.json: not valid JSON");
}

TEST(HfConfigTest, SamplingIsWhatTheGenerationConfigRecommends) {
  const std::string config = config_with({});
  const auto sampling =
      parse_hf_config(config, R"({"do_sample":true,"temperature":0.6,"top_k":20,"top_p":0.95})")->sampling;
  SamplingParams params{.logit_bias = {}, .temperature = 1.0, .min_p = 0.25};
  sampling.apply_to(params);
  EXPECT_EQ(params.temperature, 0.6);
  EXPECT_EQ(params.top_k, 20);
  EXPECT_EQ(params.top_p, 0.95);
  EXPECT_EQ(params.min_p, 0.25);
  EXPECT_FALSE(parse_hf_config(config, R"({"do_sample":false,"temperature":0.6})")->sampling.temperature);
  EXPECT_FALSE(parse_hf_config(config)->sampling.temperature);
  expect_refused(parse_hf_config(config, R"({"top_p":1.5})"), "top_p must be");
  expect_refused(parse_hf_config(config, R"({"top_k":-1})"), "top_k must not be negative");
  expect_refused(parse_hf_config(config, R"({"temperature":"warm"})"), "temperature");
}

TEST(HfConfigTest, LayersDifferInTheirWindows) {
  const auto windows = [](const Result<ModelConfig>& config) {
    std::vector<int64_t> all;
    for (int64_t i = 0; i < config->layer_count; ++i) all.push_back(config->traits_of(i).window);
    return all;
  };
  const std::string types = R"(["full_attention","sliding_attention"])";
  const auto mistral = parse_hf_config(config_with({{"architectures", "[\"MistralForCausalLM\"]"},
                                                    {"num_key_value_heads", "4"},
                                                    {"sliding_window", "7"},
                                                    {"layer_types", types}}));
  EXPECT_EQ(windows(mistral), (std::vector<int64_t>{0, 7}));
  const auto qwen = parse_hf_config(config_with({{"architectures", "[\"Qwen2ForCausalLM\"]"},
                                                 {"num_hidden_layers", "3"},
                                                 {"num_key_value_heads", "4"},
                                                 {"use_sliding_window", "true"},
                                                 {"sliding_window", "5"},
                                                 {"max_window_layers", "2"}}));
  EXPECT_EQ(windows(qwen), (std::vector<int64_t>{0, 0, 5}));
}

TEST(HfConfigTest, NewSpellingOfRopeOverridesTheOld) {
  const auto config =
      parse_hf_config(config_with({{"rope_theta", "1.0"},
                                   {"rope_scaling", R"({"type":"linear","factor":2.0})"},
                                   {"rope_parameters", R"({"rope_type":"default","rope_theta":9})"}}));
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->ropes.front().theta, 9.0);
  EXPECT_EQ(config->ropes.front().scaling.kind, RopeScalingKind::kNone);
}

TEST(HfConfigTest, MissingFilesAreNamed) {
  const TemporaryDirectory directory;
  expect_refused(read_hf_config(directory.path()), "config.json");
  directory.write("config.json", config_with({}));
  EXPECT_TRUE(read_hf_config(directory.path()).ok());
  directory.write("generation_config.json", "[]");
  expect_refused(read_hf_config(directory.path()), "generation_config.json: must be a JSON object");
}

struct HostileText {
  std::string name;
  std::string text;
  std::string part_of_message;
};

std::vector<HostileText> json_cases() {
  const std::string valid = config_with({});
  const auto nested = [](int depth) {
    return "{\"a\":" + std::string(depth, '[') + std::string(depth, ']') + "}";
  };
  return {
      {"empty", "", "not valid JSON"},
      {"white space", " \n\t ", "not valid JSON"},
      {"a list", "[]", "must be a JSON object"},
      {"a number", "7", "must be a JSON object"},
      {"null", "null", "must be a JSON object"},
      {"cut", valid.substr(0, valid.size() - 1), "not valid JSON"},
      {"two objects", valid + valid, "not valid JSON"},
      {"something after", valid + "x", "not valid JSON"},
      {"byte order mark", "\xef\xbb\xbf" + valid, "not valid JSON"},
      {"NUL inside", std::string("{\"a\":\0\"b\"}", 10), "not valid JSON"},
      {"NUL after", valid + std::string(1, '\0'), "not valid JSON"},
      {"invalid UTF-8", "{\"a\":\"\xff\xfe\"}", "not valid JSON"},
      {"lone surrogate", R"({"a":"\ud800"})", "not valid JSON"},
      {"control byte in a string", "{\"a\":\"\x01\"}", "not valid JSON"},
      {"single quotes", "{'a':1}", "not valid JSON"},
      {"comment", "{/* */}", "not valid JSON"},
      {"trailing comma", "{\"a\":1,}", "not valid JSON"},
      {"unquoted key", "{a:1}", "not valid JSON"},
      {"missing colon", "{\"a\" 1}", "not valid JSON"},
      {"NaN", "{\"a\":NaN}", "not valid JSON"},
      {"leading zero", "{\"a\":01}", "not valid JSON"},
      {"malformed number beyond a double", "{\"a\":1e400.}", "not valid JSON"},
      {"64 levels", nested(64), "not valid JSON"},
      {"10000 levels", nested(10000), "not valid JSON"},
      {"1000000 open brackets", "{\"a\":" + std::string(1000000, '['), "not valid JSON"},
      {"duplicate key", R"({"vocab_size":1,"vocab_size":2})", "key 'vocab_size' appears twice"},
      {"duplicate key by escape", R"({"vocab_size":1,"vocab\u005fsize":2})", "appears twice"},
      {"duplicate key below", R"({"a":[{"b":1,"b":1}]})", "key 'b' appears twice"},
      {"beyond 4 MiB", "{\"a\":\"" + std::string(4 << 20, 'x') + "\"}", "limit of 4 MiB"},
      {"line break in a duplicate key", R"({"a\nb":1,"a\nb":2})", "a\\x0ab"},
  };
}

std::string with(const std::string& key, const std::string& value) { return config_with({{key, value}}); }

std::vector<HostileText> size_cases() {
  return {
      {"no architecture", with("architectures", ""), "architecture '' is not supported"},
      {"architecture Bloom", with("architectures", "[\"BloomForCausalLM\"]"),
       "'BloomForCausalLM' is not supported"},
      {"the list is named", with("architectures", "[\"X\"]"), "mistral, qwen2, qwen3"},
      {"architecture as text", with("architectures", "\"LlamaForCausalLM\""), "must be a list"},
      {"architecture as number", with("architectures", "[1]"), "must be a list of strings"},
      {"architecture with a line break", with("architectures", R"(["a\nb"])"), "a\\x0ab"},
      {"bitsandbytes", with("quantization_config", R"({"quant_method":"bitsandbytes"})"),
       "quantization 'bitsandbytes' is not supported; supported: fp8, compressed-tensors, awq, gptq, mxfp4, "
       "modelopt"},
      {"GPTQ of 3 bits", with("quantization_config", R"({"quant_method":"gptq","bits":3})"),
       "3 bits are not"},
      {"quantization of no kind", with("quantization_config", "{}"), "quantization ''"},
      {"no vocab_size", with("vocab_size", ""), "'vocab_size' is missing"},
      {"vocab_size null", with("vocab_size", "null"), "'vocab_size' is missing"},
      {"vocab_size text", with("vocab_size", "\"100\""), "must be a whole number"},
      {"vocab_size fraction", with("vocab_size", "1.5"), "must be a whole number"},
      {"vocab_size true", with("vocab_size", "true"), "must be a whole number"},
      {"vocab_size 0", with("vocab_size", "0"), "vocabulary size"},
      {"vocab_size -1", with("vocab_size", "-1"), "vocabulary size"},
      {"vocab_size 2^22+1", with("vocab_size", "4194305"), "vocabulary size"},
      {"vocab_size 2^64-1", with("vocab_size", "18446744073709551615"), "must be a whole number"},
      {"vocab_size beyond 64 bits", with("vocab_size", "123456789012345678901234567890"),
       "must be a whole number, found 1.2345678901234568e+29"},
      {"hidden_size list", with("hidden_size", "[64]"), "must be a whole number"},
      {"hidden_size 2^63-1", with("hidden_size", "9223372036854775807"), "is not a multiple"},
      {"0 layers", with("num_hidden_layers", "0"), "number of layers"},
      {"1025 layers", with("num_hidden_layers", "1025"), "number of layers"},
      {"0 heads", with("num_attention_heads", "0"), "is not a multiple"},
      {"-4 heads", with("num_attention_heads", "-4"), "is not a multiple"},
      {"3 heads in 64", with("num_attention_heads", "3"), "is not a multiple of 3 heads"},
      {"3 kv heads for 4", with("num_key_value_heads", "3"), "cannot be shared evenly"},
      {"more kv heads", with("num_key_value_heads", "8"), "key-value heads"},
      {"head_dim 0", with("head_dim", "0"), "head size"},
      {"head_dim 7", with("head_dim", "7"), "must be even"},
      {"head_dim 2^40", with("head_dim", "1099511627776"), "head size"},
      {"no intermediate_size", with("intermediate_size", ""), "is missing"},
      {"context 0", with("max_position_embeddings", "0"), "context length"},
      {"context 2^31", with("max_position_embeddings", "2147483648"), "context length"},
  };
}

std::vector<HostileText> field_cases() {
  return {
      {"epsilon 0", with("rms_norm_eps", "0"), "epsilon"},
      {"epsilon beyond a double", with("rms_norm_eps", "1e400"), "epsilon"},
      {"epsilon text", with("rms_norm_eps", "\"1e-5\""), "must be a number"},
      {"epsilon 1e300", with("rms_norm_eps", "1e300"), "epsilon"},
      {"mish", with("hidden_act", "\"mish\""), "activation 'mish' is not supported"},
      {"tie as text", with("tie_word_embeddings", "\"no\""), "must be true or false"},
      {"bias as number", with("attention_bias", "1"), "must be true or false"},
      {"eos text", with("eos_token_id", "\"</s>\""), "token id"},
      {"eos -1", with("eos_token_id", "-1"), "token id"},
      {"eos 2^31", with("eos_token_id", "2147483648"), "token id"},
      {"eos beyond the vocabulary", with("eos_token_id", "100"), "end-of-text id"},
      {"eos list of text", with("eos_token_id", "[1,\"2\"]"), "token id"},
  };
}

std::vector<HostileText> rope_cases() {
  const auto rope = [](const std::string& value) { return with("rope_scaling", value); };
  return {
      {"rope_theta 0", with("rope_theta", "0"), "RoPE base"},
      {"rope_theta text", with("rope_theta", "\"1\""), "must be a number"},
      {"rope list", rope("[]"), "must be an object"},
      {"rope ntk", rope(R"({"type":"ntk","factor":4})"), "'ntk' is not supported; default, linear, dynamic"},
      {"rope dynamic without factor", rope(R"({"rope_type":"dynamic"})"), "needs a factor"},
      {"rope yarn -1", rope(R"({"type":"yarn","factor":4,"beta_fast":-1})"), "beta_slow <= beta_fast"},
      {"rope yarn NaN", rope(R"({"type":"yarn","factor":4,"attention_factor":0})"), "attention factor"},
      {"longrope without divisors", rope(R"({"type":"longrope"})"), "needs short_factor"},
      {"longrope of text", rope(R"({"type":"su","short_factor":["1"],"long_factor":[1]})"),
       "list of numbers"},
      {"longrope too short", rope(R"({"type":"su","short_factor":[1],"long_factor":[1]})"),
       "expected 8 RoPE frequency divisors, found 1"},
      {"rope type number", rope(R"({"rope_type":1})"), "must be a string"},
      {"rope linear without factor", rope(R"({"type":"linear"})"), "needs a factor"},
      {"rope factor -1", rope(R"({"type":"linear","factor":-1})"), "RoPE factor"},
      {"llama3 incomplete", rope(R"({"rope_type":"llama3","factor":8})"), "needs low_freq_factor"},
      {"llama3 swapped",
       rope(R"({"rope_type":"llama3","factor":8,"low_freq_factor":4,"high_freq_factor":1,)"
            R"("original_max_position_embeddings":8192})"),
       "low_freq_factor < high_freq_factor"},
      {"llama3 context 0",
       rope(R"({"rope_type":"llama3","factor":8,"low_freq_factor":1,"high_freq_factor":4,)"
            R"("original_max_position_embeddings":0})"),
       "original_max_position_embeddings must be positive"},
      {"rotated 0", with("partial_rotary_factor", "0"), "partial_rotary_factor"},
      {"rotated 2", with("rope_parameters", R"({"partial_rotary_factor":2})"), "partial_rotary_factor"},
      {"rotated odd", with("partial_rotary_factor", "0.2"), "rotated part of a head must be even, found 3"},
  };
}

// Options of the families that are unlike Llama.
std::vector<HostileText> family_cases() {
  const auto of = [](const std::string& architecture, std::vector<std::pair<std::string, std::string>> keys) {
    keys.insert(keys.begin(), {"architectures", "[\"" + architecture + "\"]"});
    return config_with(keys);
  };
  return {
      {"OPT without ffn_dim", of("OPTForCausalLM", {}), "'ffn_dim' is missing"},
      {"OPT embedding 0", of("OPTForCausalLM", {{"ffn_dim", "8"}, {"word_embed_proj_dim", "-1"}}),
       "size of embeddings"},
      {"OPT bias text", of("OPTForCausalLM", {{"ffn_dim", "8"}, {"enable_bias", "\"yes\""}}),
       "must be true or false"},
      {"Falcon, new but not parallel",
       of("FalconForCausalLM", {{"new_decoder_architecture", "true"}, {"parallel_attn", "false"}}),
       "without parallel_attn"},
      {"Falcon, heads of keys",
       of("FalconForCausalLM", {{"new_decoder_architecture", "true"}, {"num_kv_heads", "3"}}),
       "cannot be shared evenly"},
      {"GPT-2 without sizes", of("GPT2LMHeadModel", {}), "'n_embd' is missing"},
      {"MPT without sizes", of("MptForCausalLM", {}), "'d_model' is missing"},
      {"MPT as its authors spell it", of("MPTForCausalLM", {}), "'d_model' is missing"},
      {"Granite scale", of("GraniteForCausalLM", {{"embedding_multiplier", "0"}}), "factors of embedding"},
      {"Granite 4 with experts, without their number",
       of("GraniteMoeHybridForCausalLM",
          {{"shared_intermediate_size", "8"}, {"layer_types", "[\"attention\", \"full_attention\"]"}}),
       "'num_local_experts' is missing"},
      {"Granite 4 with Mamba",
       of("GraniteMoeHybridForCausalLM",
          {{"shared_intermediate_size", "8"}, {"num_local_experts", "0"}, {"layer_types", "[\"mamba\"]"}}),
       "layer type 'mamba'"},
  };
}

std::vector<HostileText> expert_cases() {
  const auto of = [](const std::string& architecture, std::vector<std::pair<std::string, std::string>> keys) {
    keys.insert(keys.begin(), {"architectures", "[\"" + architecture + "\"]"});
    return config_with(keys);
  };
  const auto mixtral = [&](const std::string& count, const std::string& used) {
    return of("MixtralForCausalLM", {{"num_local_experts", count}, {"num_experts_per_tok", used}});
  };
  const auto qwen = [&](const std::string& key, const std::string& value) {
    return of("Qwen3MoeForCausalLM", {{"num_experts", "4"},
                                      {"num_experts_per_tok", "2"},
                                      {"num_key_value_heads", "4"},
                                      {"moe_intermediate_size", "8"},
                                      {key, value}});
  };
  return {
      {"no expert", mixtral("0", "1"), "the number of experts must be from 1 to 1024, found 0"},
      {"2^40 experts", mixtral("1099511627776", "1"), "the number of experts must be"},
      {"0 of 4 experts", mixtral("4", "0"), "experts that a row uses must be from 1 to 4, found 0"},
      {"5 of 4 experts", mixtral("4", "5"), "experts that a row uses must be from 1 to 4, found 5"},
      {"experts in text", mixtral("\"4\"", "1"), "must be a whole number"},
      {"experts uncounted", of("MixtralForCausalLM", {}), "'num_local_experts' is missing"},
      {"experts of size 0", qwen("moe_intermediate_size", "0"), "feed-forward size of experts"},
      {"shared expert of size -1", qwen("shared_expert_intermediate_size", "-1"), "feed-forward size"},
      {"every 0th layer", qwen("decoder_sparse_step", "0"), "must be positive"},
      {"dense layers in text", qwen("mlp_only_layers", "[\"0\"]"), "a list of layer numbers"},
      {"Qwen with a window", qwen("use_sliding_window", "true"), "'use_sliding_window' is not supported"},
      {"gpt-oss with another limit",
       of("GptOssForCausalLM",
          {{"num_local_experts", "4"}, {"num_experts_per_tok", "2"}, {"swiglu_limit", "8"}}),
       "'swiglu_limit' must be 7"},
      {"OLMoE with a clamp", of("OlmoeForCausalLM", {{"clip_qkv", "8"}}), "'clip_qkv' is not supported"},
  };
}

std::vector<HostileText> deepseek_cases() {
  const auto deepseek = [](const std::string& version, const std::string& key, const std::string& value) {
    return config_with({{"architectures", "[\"Deepseek" + version + "ForCausalLM\"]"},
                        {"n_routed_experts", "4"},
                        {"num_experts_per_tok", "2"},
                        {"moe_intermediate_size", "8"},
                        {key, value}});
  };
  return {
      {"DeepSeek V2 with sigmoids", deepseek("V2", "scoring_func", "\"sigmoid\""),
       "'scoring_func' must be 'softmax', found 'sigmoid'"},
      {"DeepSeek V2 with a bias of the choice", deepseek("V2", "topk_method", "\"noaux_tc\""),
       "'topk_method' must be 'greedy' or 'group_limited_greedy', found 'noaux_tc'"},
      {"DeepSeek V2 with normalised weights", deepseek("V2", "norm_topk_prob", "true"),
       "'norm_topk_prob' is not supported"},
      {"DeepSeek V2 with experts in every second layer", deepseek("V2", "moe_layer_freq", "2"),
       "'moe_layer_freq' must be 1, found 2"},
      {"DeepSeek V3 with softmax", deepseek("V3", "scoring_func", "\"softmax\""),
       "'scoring_func' must be 'sigmoid', found 'softmax'"},
      {"DeepSeek V3 without a bias of the choice", deepseek("V3", "topk_method", "\"greedy\""),
       "'topk_method' must be 'noaux_tc', found 'greedy'"},
      {"DeepSeek V3 with halves turned", deepseek("V3", "rope_interleave", "false"),
       "'rope_interleave' must be true"},
  };
}

std::vector<HostileText> window_cases() {
  const auto mistral = [](const std::string& key, const std::string& value) {
    return config_with(
        {{"architectures", "[\"MistralForCausalLM\"]"}, {"num_key_value_heads", "4"}, {key, value}});
  };
  const auto qwen = [](const std::string& key, const std::string& value) {
    return config_with({{"architectures", "[\"Qwen2ForCausalLM\"]"},
                        {"num_key_value_heads", "4"},
                        {"use_sliding_window", "true"},
                        {key, value}});
  };
  return {
      {"window -1", mistral("sliding_window", "-1"), "sliding window"},
      {"window text", mistral("sliding_window", "\"4096\""), "must be a whole number"},
      {"one layer type for two", mistral("layer_types", R"(["full_attention"])"),
       "an entry for each of 2 layers, found 1"},
      {"unknown layer", mistral("layer_types", R"(["linear_attention"])"),
       "'linear_attention' is not supported"},
      {"layer of number", mistral("layer_types", "[1]"), "must be a list of strings"},
      {"use_sliding_window text", qwen("use_sliding_window", "\"yes\""), "must be true or false"},
  };
}

TEST(HfConfigHostileTest, NamedKinds) {
  ASSERT_TRUE(parse_hf_config(config_with({})).ok());
  size_t count = 0;
  for (const auto& cases : {json_cases(), size_cases(), field_cases(), rope_cases(), window_cases(),
                            family_cases(), expert_cases(), deepseek_cases()}) {
    for (const HostileText& hostile : cases) {
      SCOPED_TRACE(hostile.name);
      expect_refused(parse_hf_config(hostile.text), hostile.part_of_message);
      ++count;
    }
  }
  EXPECT_GE(count, 60u);
}

TEST(HfConfigHostileTest, CutAtEveryByte) {
  const std::string text = config_with({{"rope_scaling", R"({"type":"linear","factor":2.0})"}});
  for (size_t size = 0; size < text.size(); ++size) {
    SCOPED_TRACE(size);
    expect_refused(parse_hf_config(std::string_view(text).substr(0, size)), "not valid JSON");
  }
}

TEST(HfConfigHostileTest, EveryByteReplaced) {
  const std::string valid = config_with({{"rope_scaling", R"({"type":"linear","factor":2.0})"}});
  for (size_t i = 0; i < valid.size(); ++i) {
    for (const char c : {'\0', '"', '{', '}', '[', ',', ':', '9', '-', '\\', '\xff'}) {
      std::string text = valid;
      text[i] = c;
      expect_refused_or_valid(parse_hf_config(text));
    }
  }
}

}  // namespace
}  // namespace outrider
