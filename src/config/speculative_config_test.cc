// SPDX-License-Identifier: Apache-2.0
#include "config/speculative_config.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "config/message_text.h"
#include "config/methods.h"

namespace outrider {
namespace {

SpeculativeOptions parsed(const std::string& text) {
  auto config = parse_speculative(text);
  EXPECT_TRUE(config.ok()) << (config.ok() ? "" : config.error().message);
  return config.ok() ? config->options : SpeculativeOptions{};
}

std::string error_of(const std::string& text) {
  const auto config = parse_speculative(text);
  return config.ok() ? "accepted: " + text : config.error().message;
}

Result<SpeculativeConfig> from_yaml(const std::string& text) {
  OUTRIDER_TRY(const ConfigNode node, parse_config(text, "s.yaml"));
  OUTRIDER_TRY(const GivenSpeculation given, read_speculation(node, "s.yaml"));
  return assemble_speculation(given);
}

TEST(SpeculativeConfig, MethodNamesIgnoreCaseAndSeparators) {
  for (const char* name : {"draft_target", "DraftTarget", "DRAFT-TARGET", "drafttarget", "draft_model"}) {
    EXPECT_EQ(parsed(name).decoding_type, Method::kDraftTarget) << name;
  }
  EXPECT_EQ(parsed("n-gram").decoding_type, Method::kNGram);
  EXPECT_EQ(parsed("none").decoding_type, Method::kNone);
}

TEST(SpeculativeConfig, InlineKeys) {
  const SpeculativeOptions ngram =
      parsed("ngram, max_draft_len=8,max-matching-ngram-size=3,is_keep_all=False,is_use_oldest=no");
  EXPECT_EQ(ngram.decoding_type, Method::kNGram);
  EXPECT_EQ(ngram.max_draft_len, 8);
  EXPECT_EQ(ngram.ngram.max_matching_ngram_size, 3);
  EXPECT_FALSE(ngram.ngram.is_keep_all);
  EXPECT_FALSE(ngram.ngram.is_use_oldest);
  EXPECT_EQ(parsed("speculative_model=models/d").decoding_type, Method::kDraftTarget);
  EXPECT_EQ(parsed("decoding_type=NGram,is_public_pool=true").ngram.is_public_pool, true);
}

// The state of all keys, and the questions that are left open.
std::string state_text(const SpeculativeOptions& options) {
  const SpeculativeConfig config{.options = options, .warnings = {}};
  const UnsetShape& unset = options.shape_unset;
  std::string text = fmt::format("{} {}, unset {} {} {} {}", method_name(options.decoding_type),
                                 options.method_unset, unset.kind, unset.max_draft_len,
                                 unset.dynamic_tree_max_top_k, unset.max_total_draft_tokens);
  for (const SpeculativeKey& key : speculative_key_table())
    text += fmt::format(", {}={}", key.name, key.member.text(config));
  return text;
}

TEST(SpeculativeConfig, ItsTextGivesTheOptionsBack) {
  const std::pair<const char*, const char*> texts[] = {
      {"none", "none"},
      {"auto", "auto"},
      {"N-Gram, max_draft_len=4", "ngram,max_draft_len=4"},
      {"ngram,max_draft_len=0", "none,max_draft_len=4"},
      {"medusa,tree=chain,policy=fixed", "medusa,tree=chain,policy=fixed"},
      {"suffix,expansion=[2,2,1]", "suffix,tree=static,expansion=[2,2,1]"},
      {"suffix,tree=static", "suffix,tree=static"},
      {"eagle3,speculative_model=/h,dynamic_tree_max_topK=3,max_total_draft_tokens=16,max_draft_len=6",
       "eagle3,max_draft_len=6,tree=dynamic,dynamic_tree_max_topK=3,max_total_draft_tokens=16,"
       "speculative_model=/h"},
      {"eagle3,verified_tokens=33", "eagle3,max_draft_len=32,tree=dynamic,max_total_draft_tokens=32"},
      {"eagle3,use_sa_spec=true,eagle3_layers_to_capture=[1,5]",
       "eagle3_layers_to_capture=[1,5],combine=[suffix,eagle3]"},
      {"medusa,medusa_choices=[[0],[0, 0]]", "medusa,tree=choices,medusa_choices=[[0],[0,0]]"},
      {"speculative_model=models/d", "speculative_model=models/d"},
      {"spec_infer,speculative_models=[a,b]", "spec_infer,speculative_models=[a,b]"},
      {"{\"decoding_type\":\"pard\",\"speculative_model\":\"/a, \\\"b\\\"\",\"max_draft_len\":9}",
       "{\"decoding_type\":\"pard\",\"max_draft_len\":\"9\",\"speculative_model\":\"/a, \\\"b\\\"\"}"},
      {"ngram,draft_len_schedule={4:4,8:2},is_keep_all=no",
       "ngram,draft_len_by_batch=[[1,4],[5,2],[9,0]],is_keep_all=false"},
      {"ngram,max_concurrency=0,draft_temperature=1.5,children=top",
       "ngram,children=top,draft_temperature=1.5,draft_len_by_batch=[[1,0]]"},
      {"early_exit,skip_mlp_layers=[2,3]", "early_exit,skip_mlp_layers=[2,3]"},
  };
  for (const auto& [given, expected] : texts) {
    const SpeculativeOptions options = parsed(given);
    EXPECT_EQ(speculative_text(options), expected);
    EXPECT_EQ(state_text(parsed(expected)), state_text(options)) << given;
  }
}

TEST(SpeculativeConfig, ThePolicyDecidesUnlessItIsFixed) {
  for (const char* text : {"auto", "ngram", "draft_target,speculative_model=d,max_draft_len=4",
                           "combine=[ngram,suffix]", "eagle3,policy=auto"})
    EXPECT_TRUE(parsed(text).is_auto) << text;
  for (const char* text : {"ngram,policy=fixed", "auto,policy=fixed"})
    EXPECT_FALSE(parsed(text).is_auto) << text;
  GivenSpeculation given;
  given.has_user_drafter = true;
  EXPECT_FALSE(assemble_speculation(given)->options.is_auto);
}

TEST(SpeculativeConfig, TheSuffixAutomatonOfTensorRtIsTheSuffixTree) {
  const auto longest = from_yaml("decoding_type: SA\nmax_draft_len: 4\nmax_matching_ngram_size: -1\n");
  ASSERT_TRUE(longest.ok()) << longest.error().message;
  EXPECT_EQ(speculative_text(longest->options), "suffix,max_draft_len=4");
  EXPECT_TRUE(longest->warnings.empty());
  const auto pool = from_yaml(
      "max_matching_ngram_size: 3\nmax_draft_len: 4\nenable_global_pool: true\nglobal_pool_size: 64\n"
      "decoding_type: SA\n");
  ASSERT_TRUE(pool.ok()) << pool.error().message;
  EXPECT_EQ(speculative_text(pool->options), "suffix,max_draft_len=4,suffix_max_cached_requests=1024");
  EXPECT_EQ(pool->warnings.size(), 2u);
  EXPECT_EQ(pool->warnings.front(),
            "s.yaml:1: max_matching_ngram_size has no effect here: the suffix tree finds the longest match");
  EXPECT_NE(error_of("suffix,max_matching_ngram_size=0").find("expected a whole number from 1"),
            std::string::npos);
  EXPECT_NE(error_of("ngram,max_matching_ngram_size=-1").find("expected a whole number"), std::string::npos);
}

TEST(SpeculativeConfig, LengthZeroDraftsNothing) {
  EXPECT_EQ(parsed("ngram,max_draft_len=0").decoding_type, Method::kNone);
  EXPECT_EQ(parsed("ngram,max_draft_len=64").max_draft_len, 64);
}

TEST(SpeculativeConfig, TensorRtYamlBlockWorksUnchanged) {
  const auto ngram = from_yaml(
      "disable_overlap_scheduler: true\nspeculative_config:\n  decoding_type: NGram\n  max_draft_len: 4\n"
      "  max_matching_ngram_size: 2\n  is_keep_all: True\n  is_use_oldest: True\n  is_public_pool: True\n");
  ASSERT_TRUE(ngram.ok()) << ngram.error().message;
  EXPECT_EQ(ngram->options.decoding_type, Method::kNGram);
  EXPECT_TRUE(ngram->options.ngram.is_public_pool);
  ASSERT_EQ(ngram->warnings.size(), 1u);
  EXPECT_NE(ngram->warnings[0].find("disable_overlap_scheduler"), std::string::npos);

  const auto draft = from_yaml("decoding_type: DraftTarget\nmax_draft_len: 3\nspeculative_model_dir: /m/d\n");
  ASSERT_TRUE(draft.ok()) << draft.error().message;
  EXPECT_EQ(draft->options.speculative_model, "/m/d");
}

TEST(SpeculativeConfig, TensorRtSuffixMapSharesTheTree) {
  const auto config = from_yaml(
      "decoding_type: Eagle3\nmax_draft_len: 4\nspeculative_model: /m/e\nacceptance_rate_window_size: 100\n"
      "acceptance_rate_threshold: 0.3\nsa_config:\n  max_matching_ngram_size: -1\n  enable_global_pool: "
      "true\n");
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->options.combine, (std::vector{Method::kSuffix, Method::kEagle3}));
  EXPECT_EQ(config->options.suffix.max_cached_requests, 1024);
  EXPECT_EQ(config->options.ngram.max_matching_ngram_size,
            SpeculativeOptions().ngram.max_matching_ngram_size);
  EXPECT_EQ(config->warnings.size(), 3u);
  const auto wrong = from_yaml("decoding_type: Eagle3\nspeculative_model: /m/e\nsa_config:\n  pool: true\n");
  ASSERT_FALSE(wrong.ok());
  EXPECT_NE(wrong.error().message.find("sa_config.pool"), std::string::npos);
  EXPECT_FALSE(from_yaml("decoding_type: NGram\nsuffix_max_cached_requests: 4\n").ok());
}

TEST(SpeculativeConfig, VllmJsonIsAnAlias) {
  const auto config = parse_speculative(
      R"({"method": "ngram", "num_speculative_tokens": 5, "prompt_lookup_max": 4, "prompt_lookup_min": 2})");
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->options.decoding_type, Method::kNGram);
  EXPECT_EQ(config->options.max_draft_len, 5);
  EXPECT_EQ(config->options.ngram.max_matching_ngram_size, 4);
  EXPECT_EQ(config->warnings.size(), 1u);
  EXPECT_EQ(parsed(R"({"model":"d","num_speculative_tokens":3})").decoding_type, Method::kDraftTarget);
}

TEST(SpeculativeConfig, FilesAreRead) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / "outrider_speculative_test.yaml";
  std::ofstream(path) << "speculative_config:\n  decoding_type: ngram\n  max_draft_len: 9\n";
  EXPECT_EQ(parsed(path.string()).max_draft_len, 9);
  std::ofstream(path) << "speculative_config:\n  decoding_type: ngram\n  max_draft_lem: 9\n";
  EXPECT_EQ(error_of(path.string()).substr(0, path.string().size() + 3), path.string() + ":3:");
  std::filesystem::remove(path);
  EXPECT_NE(error_of("missing.yaml").find("no such file"), std::string::npos);
}

TEST(SpeculativeConfig, ErrorsNameTheNearest) {
  EXPECT_NE(error_of("ngrm").find("did you mean 'NGram'"), std::string::npos);
  EXPECT_NE(error_of("ngram,max_draft_length=3").find("did you mean 'max_draft_len'"), std::string::npos);
}

TEST(SpeculativeConfig, ADrafterOfTheCallersOwnNeedsACppProgram) {
  EXPECT_NE(error_of("UserProvided").find("use one of None, NGram, DraftTarget"), std::string::npos);
}

TEST(SpeculativeConfig, ListsStandInBracketsOrAreLists) {
  const std::vector<int> expansion = {2, 1, 3};
  for (const char* text :
       {"draft_target,expansion=[2, 1,3]", R"({"method": "DraftTarget", "expansion": [2, 1, 3]})",
        R"({"method": "DraftTarget", "tree": "static", "expansion": "2,1,3"})"}) {
    const auto config = parse_speculative(text);
    ASSERT_TRUE(config.ok()) << config.error().message;
    EXPECT_EQ(config->options.tree.expansion, expansion);
    EXPECT_EQ(config->options.tree.kind, TreeKind::kStatic);
    EXPECT_EQ(config->options.max_draft_len, 3);
  }
  const auto combined = parse_speculative("combine=[ngram, draft-target],max_total_draft_tokens=24");
  ASSERT_TRUE(combined.ok()) << combined.error().message;
  EXPECT_EQ(combined->options.decoding_type, Method::kCombined);
  EXPECT_EQ(combined->options.combine, (std::vector<Method>{Method::kNGram, Method::kDraftTarget}));
  EXPECT_EQ(combined->options.tree.kind, TreeKind::kDynamic);
  EXPECT_NE(error_of("combine=[ngram,none]").find("methods that draft"), std::string::npos);
  EXPECT_NE(error_of("combine=[]").find("methods that draft"), std::string::npos);
  EXPECT_NE(error_of("draft_target,tree=bush").find("chain, static, dynamic"), std::string::npos);
  EXPECT_NE(error_of("draft_target,expansion=[2,0]").find("from 1 to 64"), std::string::npos);
}

const std::string kMalformed[] = {
    "",
    ",",
    "=",
    "ngram,",
    "ngram,,",
    "ngram,ngram",
    "ngram,max_draft_len",
    "ngram,max_draft_len=",
    "ngram,max_draft_len=-1",
    "ngram,max_draft_len=65",
    "ngram,max_draft_len=4.0",
    "ngram,max_draft_len=4x",
    "ngram,max_draft_len=0x4",
    "ngram,max_draft_len=99999999999999999999",
    "ngram,max_draft_len=4,max_draft_len=5",
    "ngram,max_draft_len=4,num_speculative_tokens=5",
    "ngram,method=suffix",
    "ngram,is_keep_all=maybe",
    "ngram,is_keep_all=2",
    "ngram,max_matching_ngram_size=0",
    "ngram,max_matching_ngram_size=17",
    "ngram,max_pool_patterns=0",
    "ngram,speculative_model=d",
    "draft_target,is_keep_all=true",
    "draft_target,speculative_model=",
    "max_draft_len=4",
    "{",
    "{}",
    "{]",
    R"({"method": })",
    R"({"method": null})"
    "x",
    R"({"method": ["ngram"]})",
    R"({"method": {"a": 1}})",
    R"({"method": "ngram", "method": "ngram"})",
    R"({"method": "ngram", "num_speculative_tokens": "four"})",
    R"({"method": "ngram", "num_speculative_tokens": 1e3})",
    R"({"method": "ngram", "num_speculative_tokens": [4]})",
    R"({"speculative_config": 4})",
    R"({"speculative_config": [4]})",
    R"({"speculative_config": {"speculative_config": "x"}})",
    std::string("ngram\0", 6),
    std::string(100000, 'a'),
    std::string(100000, ','),
    "\xff\xfe",
    "ngram\nmax_draft_len=4",
};

TEST(SpeculativeConfig, MalformedTextIsRefusedInOneLine) {
  for (const std::string& text : kMalformed) {
    const auto config = parse_speculative(text);
    ASSERT_FALSE(config.ok()) << text.substr(0, 60);
    EXPECT_EQ(config.error().message.find('\n'), std::string::npos) << text.substr(0, 60);
    EXPECT_LT(config.error().message.size(), 400u);
  }
}

TEST(SpeculativeConfig, MedusaChoicesAreListsOfRanks) {
  const std::vector<std::vector<int>> expected = {{0}, {0, 0}, {1}};
  const SpeculativeOptions inline_choices = parsed("medusa,medusa_choices=[[0],[0, 0],[1]]");
  EXPECT_EQ(inline_choices.tree.choices, expected);
  EXPECT_EQ(inline_choices.tree.kind, TreeKind::kChoices);
  const auto yaml = from_yaml("decoding_type: Medusa\nmedusa_choices: [[0], [0, 0], [1]]\n");
  ASSERT_TRUE(yaml.ok()) << yaml.error().message;
  EXPECT_EQ(yaml->options.tree.choices, expected);
  EXPECT_TRUE(parsed("medusa").shape_unset.kind);
  EXPECT_TRUE(parsed("medusa").shape_unset.max_draft_len);
  EXPECT_FALSE(parsed("medusa,medusa_choices=[[0]]").shape_unset.kind);
  const SpeculativeOptions measured =
      parsed("mtp,tree_accuracies=[[0.5, 0.25],[0.125]],max_total_draft_tokens=3");
  EXPECT_EQ(measured.tree.kind, TreeKind::kChoices);
  EXPECT_EQ(measured.tree.accuracies, (std::vector<std::vector<double>>{{0.5, 0.25}, {0.125}}));
  EXPECT_EQ(parsed(speculative_text(measured)).tree.accuracies, measured.tree.accuracies);
  for (const char* wrong : {"[]", "[[]]", "[0.5]", "[[0.5],0.5]", "[[1.5]]", "[[0,0.5]]", "[[x]]",
                            "[[0.5]],medusa_choices=[[0]]"}) {
    const auto config = parse_speculative(std::string("mtp,tree_accuracies=") + wrong);
    ASSERT_FALSE(config.ok()) << wrong;
    EXPECT_NE(config.error().message.find("tree_accuracies"), std::string::npos) << config.error().message;
  }
  EXPECT_FALSE(parsed("speculative_model=models/d,max_draft_len=4").shape_unset.max_draft_len);
  EXPECT_FALSE(parsed("medusa,expansion=[2,1]").shape_unset.max_draft_len);
  EXPECT_EQ(parsed("medusa,max_draft_len=3").tree.kind, TreeKind::kChain);
  EXPECT_EQ(parsed("medusa,max_total_draft_tokens=8").tree.kind, TreeKind::kDynamic);
  for (const char* wrong : {"0", "[0]", "[[0],1]", "[[a]]", "[[-1]]", "[[0]"}) {
    const auto config = parse_speculative(std::string("medusa,medusa_choices=") + wrong);
    ASSERT_FALSE(config.ok()) << wrong;
    EXPECT_NE(config.error().message.find("medusa_choices"), std::string::npos) << config.error().message;
  }
}

// The parser does not open the directory, so that keys of any method may come with it.
TEST(SpeculativeConfig, FilesAloneLeaveTheMethodOpen) {
  EXPECT_TRUE(parsed("speculative_model=models/d,medusa_choices=[[0]]").method_unset);
  EXPECT_FALSE(parsed("draft_target,speculative_model=models/d").method_unset);
}

TEST(SpeculativeConfig, MethodsAreWrittenAsTheyAreRead) {
  EXPECT_EQ(snake_name("DraftTarget"), "draft_target");
  EXPECT_EQ(snake_name("EarlyExit"), "early_exit");
  EXPECT_EQ(snake_name("NGram"), "ngram");
  EXPECT_EQ(snake_name("MoA"), "moa");
  EXPECT_EQ(snake_name("DFlash"), "dflash");
  EXPECT_EQ(snake_name("Eagle3"), "eagle3");
}

}  // namespace
}  // namespace outrider
