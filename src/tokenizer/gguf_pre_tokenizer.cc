// SPDX-License-Identifier: Apache-2.0
// The pre-tokenizers that GGUF files name, as the tokenizer.json of each family spells them.
#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>

#include "base/quote.h"
#include "tokenizer/tokenizer.h"

namespace outrider {
namespace {

constexpr std::string_view kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|)"
    R"(\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|)"
    R"(\s+(?!\S)|\s+)";
constexpr std::string_view kTekken =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|)"
    R"(\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kGpt4o =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kDeepSeekV3 =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|)"
    R"( ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
// Llama 3's words with white space cut into powers of two.
constexpr std::string_view kJais2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|)"
    R"(\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|)"
    R"(\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1})";
constexpr std::string_view kMiniCpm5 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|)"
    R"(\s+(?!\S)|\s+)";
constexpr std::string_view kQwen35 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|)"
    R"(\s*[\r\n]+|\s+(?!\S)|\s+)";
// Qwen2's words without the English contractions.
constexpr std::string_view kUfakZeka =
    R"([^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kSeedCoder =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|)"
    R"(\s+(?!\S)|\s+)";
constexpr std::string_view kBailing =
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|)"
    R"(\s+(?!\S)|\s+)";
constexpr std::string_view kExaoneMoe =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}|)"
    R"( ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+)";
constexpr std::string_view kSpark =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+|)"
    R"( ?[\p{P}\p{S}]+|[\r\n]|\s+(?!\S)|\s+)";
constexpr std::string_view kYoutuEastAsian =
    R"([\x{AC00}-\x{D7A3}\x{3131}-\x{318E}]+|)"
    R"([\x{FF01}\x{2026}\x{201C}\x{201D}\x{2018}\x{2019}\x{2014}\x{FF1A}\x{FF1B}\x{FF0C}\x{3001}-\x{303F})"
    R"(\x{FE30}-\x{FE4F}]+|[\x{3105}-\x{312F}]+|[\x{4E00}-\x{9FA5}\x{3040}-\x{30FF}]+)";
constexpr std::string_view kYoutu =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"(\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kBloom = R"( ?[^(\s|.,!?\x{2026}\x{3002}\x{FF0C}\x{3001}\x{964}\x{6D4}\x{60C})]+)";
// Groups digits in threes from the right.
constexpr std::string_view kTinyAyaDigits = R"(\d{1,3}(?=(?:\d{3})*\b))";
// GPT-4o's words without Han characters, which stand by themselves.
constexpr std::string_view kKimi =
    R"([\p{Han}]+|)"
    R"([^\r\n\p{L}\p{N}]?(?:(?!\p{Han})[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])*(?:(?!\p{Han})[\p{Ll}\p{Lm}\p{Lo}\p{M}])+)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"([^\r\n\p{L}\p{N}]?(?:(?!\p{Han})[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}])+(?:(?!\p{Han})[\p{Ll}\p{Lm}\p{Lo}\p{M}])*)"
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?|)"
    R"(\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kDigit = R"(\p{N})";
constexpr std::string_view kLineBreak = R"([\r\n])";
constexpr std::string_view kDeepSeekEastAsian = R"([\x{800}-\x{9FA5}\x{AC00}-\x{D7FF}]+)";
// The cased letters that DeepSeek lists. Letters of later Unicode versions, Armenian small letters and others
// are missing there.
constexpr std::string_view kDeepSeekLetters =
    "\\s?["
    "A-Za-z\\x{B5}\\x{C0}-\\x{D6}\\x{D8}-\\x{F6}\\x{F8}-\\x{1BA}\\x{1BC}-\\x{1BF}\\x{1C4}-\\x{293}"
    "\\x{295}-\\x{2AF}\\x{370}-\\x{373}\\x{376}\\x{377}\\x{37B}-\\x{37D}\\x{37F}\\x{386}\\x{388}-\\x{38A}"
    "\\x{38C}\\x{38E}-\\x{3A1}\\x{3A3}-\\x{3F5}\\x{3F7}-\\x{481}\\x{48A}-\\x{52F}\\x{531}-\\x{556}"
    "\\x{10A0}-\\x{10C5}\\x{13A0}-\\x{13F5}\\x{13F8}-\\x{13FD}\\x{1C90}-\\x{1CBA}\\x{1CBD}-\\x{1CBF}"
    "\\x{1D00}-\\x{1D2B}\\x{1D6B}-\\x{1D77}\\x{1D79}-\\x{1D9A}\\x{1E00}-\\x{1F15}\\x{1F18}-\\x{1F1D}"
    "\\x{1F20}-\\x{1F45}\\x{1F48}-\\x{1F4D}\\x{1F50}-\\x{1F57}\\x{1F59}\\x{1F5B}\\x{1F5D}\\x{1F5F}-\\x{1F7D}"
    "\\x{1F80}-\\x{1FB4}\\x{1FB6}-\\x{1FBC}\\x{1FBE}\\x{1FC2}-\\x{1FC4}\\x{1FC6}-\\x{1FCC}\\x{1FD0}-\\x{1FD3}"
    "\\x{1FD6}-\\x{1FDB}\\x{1FE0}-\\x{1FEC}\\x{1FF2}-\\x{1FF4}\\x{1FF6}-\\x{1FFC}\\x{2102}\\x{2107}"
    "\\x{210A}-\\x{2113}\\x{2115}\\x{2119}-\\x{211D}\\x{2124}\\x{2126}\\x{2128}\\x{212A}-\\x{212D}"
    "\\x{212F}-\\x{2134}\\x{2139}\\x{213C}-\\x{213F}\\x{2145}-\\x{2149}\\x{214E}\\x{2183}\\x{2184}"
    "\\x{2C00}-\\x{2C7B}\\x{2C7E}-\\x{2CE4}\\x{2CEB}-\\x{2CEE}\\x{2CF2}\\x{2CF3}\\x{A640}-\\x{A66D}"
    "\\x{A680}-\\x{A69B}\\x{A722}-\\x{A76F}\\x{A771}-\\x{A787}\\x{A78B}-\\x{A78E}\\x{AB70}-\\x{ABBF}"
    "\\x{FB00}-\\x{FB06}\\x{FB13}-\\x{FB17}\\x{FF21}-\\x{FF3A}\\x{FF41}-\\x{FF5A}\\x{10400}-\\x{1044F}"
    "\\x{104B0}-\\x{104D3}\\x{104D8}-\\x{104FB}\\x{10C80}-\\x{10CB2}\\x{10CC0}-\\x{10CF2}"
    "\\x{118A0}-\\x{118DF}\\x{1E900}-\\x{1E943}"
    "]+";
constexpr std::string_view kDeepSeekPunctuation =
    R"(\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3000}-\x{3002}]+)";
constexpr std::string_view kPunctuation = R"([\p{P}!-/:-@\[-`{-~])";

SplitRule isolated(std::string_view pattern) { return {.pattern = std::string(pattern)}; }

std::vector<SplitRule> isolated_in_turn(std::initializer_list<std::string_view> patterns) {
  std::vector<SplitRule> rules;
  for (const std::string_view pattern : patterns) rules.push_back(isolated(pattern));
  return rules;
}

// Falcon splits at digits after bytes have been mapped to printable characters, some of which are digits.
std::vector<SplitRule> falcon_rules() {
  return {{.pattern = std::string(kPunctuation), .behavior = SplitBehavior::kContiguous},
          isolated(kGpt2),
          {.pattern = std::string(kDigit), .behavior = SplitBehavior::kContiguous, .on_mapped_bytes = true},
          {.pattern = "[0-9][0-9][0-9]", .on_mapped_bytes = true}};
}

std::vector<SplitRule> gpt2_rules() { return {isolated(kGpt2)}; }
std::vector<SplitRule> llama3_rules() { return {isolated(kLlama3)}; }
std::vector<SplitRule> qwen2_rules() { return {isolated(kQwen2)}; }
std::vector<SplitRule> tekken_rules() { return {isolated(kTekken)}; }
std::vector<SplitRule> gpt4o_rules() { return {isolated(kGpt4o)}; }
std::vector<SplitRule> digits_gpt2_rules() { return isolated_in_turn({kDigit, kGpt2}); }
std::vector<SplitRule> default_rules() {
  return isolated_in_turn({R"([\p{P}\$\+<=>\^~\|]+)", kGpt2, R"(\p{N}+)", "[0-9][0-9][0-9]"});
}
std::vector<SplitRule> deepseek_llm_rules() {
  return isolated_in_turn(
      {kLineBreak, kDeepSeekLetters, kDeepSeekPunctuation, R"(\s+$)", kDeepSeekEastAsian, kDigit});
}
std::vector<SplitRule> deepseek_coder_rules() {
  return isolated_in_turn({kLineBreak, R"(\s?\p{L}+)", R"(\s?\p{P}+)", kDeepSeekEastAsian, kDigit});
}
std::vector<SplitRule> deepseek_v3_rules() {
  return isolated_in_turn({R"(\p{N}{1,3})", R"([\x{4E00}-\x{9FA5}\x{3040}-\x{30FF}]+)", kDeepSeekV3});
}

std::vector<SplitRule> jais2_rules() { return {isolated(kJais2)}; }
std::vector<SplitRule> minicpm5_rules() { return isolated_in_turn({R"(\p{N}{1,3})", kMiniCpm5}); }
std::vector<SplitRule> qwen35_rules() { return {isolated(kQwen35)}; }
std::vector<SplitRule> laguna_rules() { return isolated_in_turn({R"([^\n]+|[\n]+)", kQwen2}); }
std::vector<SplitRule> ufakzeka_rules() { return {isolated(kUfakZeka)}; }
std::vector<SplitRule> seed_coder_rules() { return {isolated(kSeedCoder)}; }
std::vector<SplitRule> bailing_rules() { return {isolated(kBailing)}; }
std::vector<SplitRule> exaone_moe_rules() { return {isolated(kExaoneMoe)}; }
std::vector<SplitRule> spark_rules() {
  return isolated_in_turn({R"(\p{N}{1,3})", R"([\x{4E00}-\x{9FA5}\x{3040}-\x{30FF}]+)", kSpark, kDigit});
}
std::vector<SplitRule> youtu_rules() { return isolated_in_turn({kYoutuEastAsian, kYoutu}); }
std::vector<SplitRule> bloom_rules() { return {isolated(kBloom)}; }
std::vector<SplitRule> viking_rules() { return isolated_in_turn({kBloom, kDigit}); }
std::vector<SplitRule> chameleon_rules() {
  return isolated_in_turn({"<sentinel:[0-9]+>", "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z", R"(([\t\n]|    |  ))",
                           kDigit, kPunctuation, kGpt2});
}
std::vector<SplitRule> tiny_aya_rules() { return isolated_in_turn({kTinyAyaDigits, kGpt4o}); }
std::vector<SplitRule> superbpe_rules() { return isolated_in_turn({R"(\p{N}+)", R"((?=(\d{3})+(?!\d)))"}); }
std::vector<SplitRule> kimi_rules() { return {isolated(kKimi)}; }

struct Preset {
  std::string_view name;
  std::vector<SplitRule> (*rules)();
  bool ignore_merges = false;
  bool normalize_nfc = false;
  bool begins_with_bos = false;

  std::vector<NormalizerStep> normalizer() const {
    return normalize_nfc ? std::vector{NormalizerStep{.kind = NormalizerKind::kNfc}}
                         : std::vector<NormalizerStep>();
  }
};

// Where several names mean the same, exports write the first.
constexpr std::array kPresets = {
    Preset{"default", default_rules},
    Preset{"gpt-2", gpt2_rules},
    Preset{"phi-2", gpt2_rules},
    Preset{"jais", gpt2_rules},
    Preset{"trillion", gpt2_rules},
    Preset{"granite-docling", gpt2_rules},
    Preset{"exaone4", gpt2_rules},
    Preset{"gigachat", gpt2_rules},
    Preset{"mellum", gpt2_rules},
    Preset{"a.x-4.0", gpt2_rules},
    Preset{"modern-bert", gpt2_rules},
    Preset{"jina-es", gpt2_rules},
    Preset{"jina-de", gpt2_rules},
    Preset{"jina-v2-es", gpt2_rules},
    Preset{"jina-v2-de", gpt2_rules},
    Preset{"mpt", gpt2_rules, false, true},
    Preset{"olmo", gpt2_rules, false, true},
    Preset{"llama-bpe", llama3_rules, true, false, true},
    Preset{"llama3", llama3_rules, true, false, true},
    Preset{"llama-v3", llama3_rules, true, false, true},
    Preset{"falcon3", llama3_rules, true, false, true},
    Preset{"falcon-h1", llama3_rules, true, false, true},
    Preset{"pixtral", llama3_rules, true, false, true},
    Preset{"midm-2.0", llama3_rules, true, false, true},
    Preset{"lfm2", llama3_rules, true, false, true},
    Preset{"jina-v5-nano", llama3_rules, true, false, true},
    Preset{"glm5", llama3_rules, true},
    Preset{"dbrx", llama3_rules},
    Preset{"smaug-bpe", llama3_rules},
    Preset{"chatglm-bpe", llama3_rules},
    Preset{"glm4", llama3_rules},
    Preset{"jais-2", jais2_rules},
    Preset{"minicpm5", minicpm5_rules, true},
    Preset{"qwen2", qwen2_rules, false, true},
    Preset{"megrez", qwen2_rules, false, true},
    Preset{"kormo", qwen2_rules, false, true},
    Preset{"f2llmv2", qwen2_rules, false, true},
    Preset{"deepseek-r1-qwen", qwen2_rules},
    Preset{"stablelm2", qwen2_rules},
    Preset{"hunyuan", qwen2_rules},
    Preset{"solar-open", qwen2_rules},
    Preset{"grok-2", qwen2_rules},
    Preset{"qwen35", qwen35_rules, false, true},
    Preset{"laguna", laguna_rules},
    Preset{"ufakzeka", ufakzeka_rules},
    Preset{"seed-coder", seed_coder_rules},
    Preset{"bailingmoe", bailing_rules},
    Preset{"bailingmoe2", bailing_rules},
    Preset{"llada-moe", bailing_rules},
    Preset{"exaone-moe", exaone_moe_rules},
    Preset{"deepseek-llm", deepseek_llm_rules},
    Preset{"deepseek-coder", deepseek_coder_rules},
    Preset{"deepseek-v3", deepseek_v3_rules},
    Preset{"hunyuan-dense", deepseek_v3_rules},
    Preset{"hy_v4", deepseek_v3_rules},
    Preset{"joyai-llm", deepseek_v3_rules},
    Preset{"spark2_5", spark_rules},
    Preset{"youtu", youtu_rules, true},
    Preset{"smollm", digits_gpt2_rules},
    Preset{"starcoder", digits_gpt2_rules},
    Preset{"refact", digits_gpt2_rules},
    Preset{"codeshell", digits_gpt2_rules},
    Preset{"exaone", digits_gpt2_rules},
    Preset{"minerva-7b", digits_gpt2_rules},
    Preset{"mellum2", digits_gpt2_rules},
    Preset{"command-r", digits_gpt2_rules, false, true},
    Preset{"falcon", falcon_rules},
    Preset{"bloom", bloom_rules},
    Preset{"poro-chat", bloom_rules},
    Preset{"gpt3-finnish", bloom_rules},
    Preset{"viking", viking_rules},
    Preset{"chameleon", chameleon_rules, false, false, true},
    Preset{"tekken", tekken_rules, true, false, true},
    Preset{"gpt-4o", gpt4o_rules},
    Preset{"llama4", gpt4o_rules},
    Preset{"kanana2", gpt4o_rules},
    Preset{"talkie", gpt4o_rules},
    Preset{"minimax-m2", gpt4o_rules},
    Preset{"granite-embed-multi-97m", gpt4o_rules, true},
    Preset{"tiny_aya", tiny_aya_rules},
    Preset{"cohere2moe", tiny_aya_rules},
    Preset{"superbpe", superbpe_rules},
    Preset{"kimi-k2", kimi_rules},
};

}  // namespace

Status apply_gguf_pre_tokenizer(std::string_view pre_name, TokenizerSpec& spec) {
  const auto preset = std::find_if(kPresets.begin(), kPresets.end(),
                                   [&](const Preset& candidate) { return candidate.name == pre_name; });
  if (preset == kPresets.end()) {
    return input_error("pre-tokenizer " + quote(pre_name) + " is not supported; supported are " +
                       std::to_string(std::size(kPresets)) +
                       " of those that llama.cpp names, which docs/reference/families.md lists");
  }
  spec.split_patterns = preset->rules();
  spec.ignore_merges = preset->ignore_merges;
  spec.normalizer = preset->normalizer();
  spec.add_bos = preset->begins_with_bos;
  spec.add_space_prefix = false;
  return {};
}

std::optional<std::string_view> gguf_pre_tokenizer_name(const TokenizerSpec& spec) {
  if (spec.add_space_prefix) return std::nullopt;
  for (const Preset& preset : kPresets) {
    if (preset.ignore_merges != spec.ignore_merges || preset.normalizer() != spec.normalizer) continue;
    if (preset.rules() == spec.split_patterns) return preset.name;
  }
  return std::nullopt;
}

}  // namespace outrider
