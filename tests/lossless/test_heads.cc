// SPDX-License-Identifier: Apache-2.0
#include "tests/lossless/test_heads.h"

#include <functional>
#include <map>

#include "draft_heads/recurrent_test_data.h"

namespace outrider {

std::unique_ptr<FakeHead> make_moa(const HeadTarget& target, const MoaShape& shape) {
  auto head = std::make_unique<FakeHead>();
  head->config = {{"num_attention_heads", target.heads},
                  {"target_layer_inference", shape.tli},
                  {"disable_LSA", !shape.uses_lsa},
                  {"disable_cross_attention", !shape.uses_cross}};
  const int64_t head_dim = target.hidden / target.heads;
  const int64_t kv_hidden = 2 * target.kv_heads * head_dim;
  const auto add = [&](const char* prefix, int64_t hidden, int64_t kv_heads, int64_t mlp) {
    head->add_layer(prefix, {hidden, target.heads, kv_heads, hidden / target.heads, mlp, false, false});
  };
  add("self_attention.", target.hidden, 2, 48);
  if (!shape.uses_cross) return head;
  add("cross_attention.", target.hidden, 2, 56);
  if (!shape.uses_lsa) return head;
  add("layer_self_attention.", kv_hidden, 1, 40);
  head->tensors["Ekv2E.weight"] = {target.hidden, kv_hidden};
  head->tensors["Ekv2E.bias"] = {target.hidden};
  return head;
}

std::unique_ptr<FakeHead> make_medusa(const HeadTarget& target, int heads) {
  auto head = std::make_unique<FakeHead>();
  head->config["medusa_num_heads"] = heads;
  for (int k = 0; k < heads; ++k) {
    const std::string name = std::to_string(k) + ".";
    head->tensors[name + "0.linear.weight"] = {target.hidden, target.hidden};
    head->tensors[name + "0.linear.bias"] = {target.hidden};
    head->tensors[name + "1.weight"] = {target.vocab, target.hidden};
  }
  return head;
}

std::unique_ptr<FakeHead> make_dflash(const HeadTarget& target) {
  auto head = std::make_unique<FakeHead>();
  head->config = {{"hidden_size", target.hidden},
                  {"intermediate_size", 72},
                  {"num_hidden_layers", 2},
                  {"num_attention_heads", 4},
                  {"num_key_value_heads", 2},
                  {"head_dim", 24},
                  {"max_position_embeddings", 256},
                  {"rms_norm_eps", 1e-5},
                  {"vocab_size", target.vocab},
                  {"block_size", 6},
                  {"dflash_config", {{"mask_token_id", 280}, {"target_layer_ids", {0, target.layers - 1}}}}};
  head->tensors = {{"fc.weight", {target.hidden, 2 * target.hidden}},
                   {"hidden_norm.weight", {target.hidden}},
                   {"norm.weight", {target.hidden}}};
  for (const char* prefix : {"layers.0.", "layers.1."})
    head->add_layer(prefix, {target.hidden, 4, 2, 24, 72, false, true});
  return head;
}

std::unique_ptr<FakeHead> make_sliding_dflash(const HeadTarget& target) {
  auto head = make_dflash(target);
  head->config.update({{"layer_types", {"sliding_attention", "full_attention"}},
                       {"use_sliding_window", true},
                       {"sliding_window", 7},
                       {"max_window_layers", 0}});
  return head;
}

std::unique_ptr<FakeHead> make_dflash2(const HeadTarget& target) {
  constexpr int64_t kTaps = 3, kGroup = 16, kRank = 8;
  auto head = make_sliding_dflash(target);
  head->config["dflash_config"].update({{"conv_kernel_size", kTaps},
                                        {"conv_group_size", kGroup},
                                        {"selector_rank", kRank},
                                        {"selector_top_k", 12}});
  for (const char* part :
       {"layers.0.attention_conv.", "layers.0.mlp_conv.", "layers.1.attention_conv.", "layers.1.mlp_conv."}) {
    head->tensors[std::string(part) + "base_kernel"] = {2, kTaps, target.hidden};
    head->tensors[std::string(part) + "kernel_projection.weight"] = {2 * kTaps * target.hidden / kGroup,
                                                                     target.hidden};
  }
  head->tensors["candidate_selector.hidden_projection.weight"] = {kRank, target.hidden};
  head->tensors["candidate_selector.predecessor_codebook"] = {target.vocab, kRank};
  head->tensors["candidate_selector.successor_codebook"] = {target.vocab, kRank};
  return head;
}

std::unique_ptr<FakeHead> make_dspark(const HeadTarget& target, int first_place) {
  auto head = make_dflash(target);
  head->config.update({{"markov_rank", 8}, {"sample_from_anchor", first_place == 0}});
  head->tensors["markov_head.markov_w1.weight"] = {target.vocab, 8};
  head->tensors["markov_head.markov_w2.weight"] = {target.vocab, 8};
  head->tensors["confidence_head.proj.weight"] = {1, target.hidden + 8};
  head->tensors["confidence_head.proj.bias"] = {1};
  return head;
}

// With gates ("gated") or with a cell ("rnn") before its bias.
std::unique_ptr<FakeHead> make_dspark(const HeadTarget& target, const std::string& kind) {
  auto head = make_dspark(target, 0);
  head->config["markov_head_type"] = kind;
  const bool is_cell = kind == "rnn";
  const std::string projection = is_cell ? "markov_head.joint_proj" : "markov_head.gate_proj";
  const int64_t outputs = is_cell ? 24 : 8;
  head->tensors[projection + ".weight"] = {outputs, target.hidden + (is_cell ? 16 : 8)};
  head->tensors[projection + ".bias"] = {outputs};
  return head;
}

std::unique_ptr<FakeHead> make_pard(const HeadTarget& target) {
  auto head = std::make_unique<FakeHead>();
  const int64_t head_dim = target.hidden / target.heads;
  head->config = {{"architectures", {"LlamaForCausalLM"}},
                  {"model_type", "llama"},
                  {"hidden_size", target.hidden},
                  {"intermediate_size", 64},
                  {"num_hidden_layers", 1},
                  {"num_attention_heads", target.heads},
                  {"num_key_value_heads", target.kv_heads},
                  {"max_position_embeddings", 512},
                  {"rms_norm_eps", 1e-5},
                  {"rope_theta", 10000.0},
                  {"hidden_act", "silu"},
                  {"vocab_size", target.vocab},
                  {"pard_token", 280}};
  head->tensors = {{"model.embed_tokens.weight", {target.vocab, target.hidden}},
                   {"model.norm.weight", {target.hidden}},
                   {"lm_head.weight", {target.vocab, target.hidden}}};
  head->add_layer("model.layers.0.",
                  {target.hidden, target.heads, target.kv_heads, head_dim, 64, false, false});
  std::filesystem::create_directories(head->path());
  for (const char* name : {"tokenizer.json", "tokenizer_config.json"})
    std::filesystem::copy_file(OUTRIDER_SOURCE_DIR "/tests/data/models/llama/" + std::string(name),
                               head->path() / name);
  return head;
}

std::string gemma_target() { return OUTRIDER_SOURCE_DIR "/tests/data/models/gemma4"; }

std::unique_ptr<FakeHead> make_assistant(bool has_clusters) {
  std::ifstream stream(OUTRIDER_SOURCE_DIR "/tests/data/heads/assistant.json");
  const auto goldens = nlohmann::json::parse(stream);
  const auto& golden = has_clusters ? goldens["cases"].back() : goldens["cases"].front();
  auto head = std::make_unique<FakeHead>();
  head->config = golden["config"];
  for (const auto& [name, shape] : golden["shapes"].items())
    head->tensors[name] = shape.get<std::vector<int64_t>>();
  if (has_clusters)
    head->integers["masked_embedding.token_ordering"] = golden["ordering"].get<std::vector<int64_t>>();
  return head;
}

HeadCase pard_case() {
  return {"pard", Method::kPard, [] { return make_pard(kSmallTarget); }};
}

std::unique_ptr<FakeHead> make_mtp(const HeadTarget& target, int modules) {
  auto head = std::make_unique<FakeHead>();
  const int64_t head_dim = target.hidden / target.heads;
  head->config = {{"model_type", "deepseek_mtp"},
                  {"hidden_size", target.hidden},
                  {"intermediate_size", 64},
                  {"num_hidden_layers", target.layers},
                  {"num_attention_heads", target.heads},
                  {"num_key_value_heads", target.kv_heads},
                  {"head_dim", head_dim},
                  {"rms_norm_eps", 1e-5},
                  {"hidden_act", "silu"},
                  {"vocab_size", target.vocab},
                  {"num_nextn_predict_layers", modules}};
  for (int k = 0; k < modules; ++k) {
    const std::string prefix = "model.layers." + std::to_string(target.layers + k) + ".";
    for (const char* norm : {"enorm.weight", "hnorm.weight", "shared_head.norm.weight"})
      head->tensors[prefix + norm] = {target.hidden};
    head->tensors[prefix + "eh_proj.weight"] = {target.hidden, 2 * target.hidden};
    head->add_layer(prefix, {target.hidden, target.heads, target.kv_heads, head_dim, 64, false, false});
  }
  return head;
}

std::unique_ptr<FakeHead> make_recurrent(const std::string& golden) {
  auto head = std::make_unique<FakeHead>();
  fill_head(*head, head_golden(golden));
  return head;
}

// The head may draft only every second token.
std::unique_ptr<FakeHead> with_half_of_the_tokens(std::unique_ptr<FakeHead> head, int64_t vocab_size) {
  for (int64_t row = 0; row < vocab_size / 2; ++row) head->integers["d2t"].push_back(row);
  return head;
}

std::vector<HeadCase> head_cases() {
  return {
      {"eagle", Method::kEagle, [] { return make_recurrent("eagle"); }},
      {"eagle_two_layers", Method::kEagle, [] { return make_recurrent("eagle_two_layers"); }},
      {"eagle3", Method::kEagle3, [] { return make_recurrent("eagle3"); }},
      {"eagle3_one_tap", Method::kEagle3, [] { return make_recurrent("eagle3_one_tap"); }},
      {"eagle3_speculators", Method::kEagle3, [] { return make_recurrent("eagle3_speculators"); }},
      {"mtp", Method::kMtp, [] { return make_recurrent("mtp"); }},
      {"mtp_chained", Method::kMtp, [] { return make_recurrent("mtp_chained"); }},
      {"mtp_qwen", Method::kMtp, [] { return make_recurrent("mtp_qwen"); }},
      {"mtp_half_of_the_tokens", Method::kMtp,
       [] { return with_half_of_the_tokens(make_recurrent("mtp"), kSmallTarget.vocab); }},
      {"medusa", Method::kMedusa, [] { return make_medusa(kSmallTarget, 3); }},
      {"moa", Method::kMoa, [] { return make_moa(kSmallTarget, {}); }},
      {"moa_tli_1", Method::kMoa, [] { return make_moa(kSmallTarget, {.tli = 1}); }},
      {"moa_tli_1_half_of_the_tokens", Method::kMoa,
       [] { return with_half_of_the_tokens(make_moa(kSmallTarget, {.tli = 1}), kSmallTarget.vocab); }},
      {"moa_without_lsa", Method::kMoa, [] { return make_moa(kSmallTarget, {.uses_lsa = false}); }},
      {"moa_without_lsa_tli_1", Method::kMoa,
       [] { return make_moa(kSmallTarget, {.uses_lsa = false, .tli = 1}); }},
      {"moa_without_cross", Method::kMoa, [] { return make_moa(kSmallTarget, {.uses_cross = false}); }},
      {"peagle", Method::kPEagle, [] { return make_recurrent("peagle"); }},
      {"dflash", Method::kDFlash, [] { return make_dflash(kSmallTarget); }},
      {"dflash_sliding", Method::kDFlash, [] { return make_sliding_dflash(kSmallTarget); }},
      {"dflash2", Method::kDFlash, [] { return make_dflash2(kSmallTarget); }},
      {"dspark", Method::kDSpark, [] { return make_dspark(kSmallTarget, 0); }},
      {"dspark_masks_only", Method::kDSpark, [] { return make_dspark(kSmallTarget, 1); }},
      {"dspark_gated", Method::kDSpark, [] { return make_dspark(kSmallTarget, "gated"); }},
      {"dspark_recurrent", Method::kDSpark, [] { return make_dspark(kSmallTarget, "rnn"); }},
  };
}

std::filesystem::path default_head(const std::string& name) {
  if (name == "eagle3" || name == "mtp") return OUTRIDER_SOURCE_DIR "/models/outrider-" + name;
  using Maker = std::function<std::unique_ptr<FakeHead>()>;
  static const std::map<std::string, Maker> kMakers = {
      {"medusa", [] { return make_medusa(kDefaultTarget, 3); }},
      {"dflash", [] { return make_dflash(kDefaultTarget); }},
      {"dflash2", [] { return make_dflash2(kDefaultTarget); }},
      {"dspark", [] { return make_dspark(kDefaultTarget, 0); }},
      {"mtp_chained", [] { return make_mtp(kDefaultTarget, 3); }},
      {"moa", [] { return make_moa(kDefaultTarget, {}); }},
      {"moa_half_of_the_tokens",
       [] { return with_half_of_the_tokens(make_moa(kDefaultTarget, {}), kDefaultTarget.vocab); }},
      {"moa_tli_2", [] { return make_moa(kDefaultTarget, {.tli = 2}); }},
      {"moa_tli_3", [] { return make_moa(kDefaultTarget, {.uses_lsa = false, .tli = 3}); }},
  };
  const auto maker = kMakers.find(name);
  if (maker == kMakers.end()) return {};
  static std::map<std::string, std::unique_ptr<FakeHead>> made;
  std::unique_ptr<FakeHead>& head = made[name];
  if (head == nullptr) {
    head = maker->second();
    head->scale = 0.1f;  // hardly more than the residual stream, so that a draft is right now and then
    head->write();
  }
  return head->path();
}

}  // namespace outrider
