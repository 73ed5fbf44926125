// SPDX-License-Identifier: Apache-2.0
// Auto finds the drafter of a target wherever people have it, takes none that is not the target's, and the
// text stays as it is without drafts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "config/message_text.h"
#include "config/speculative_config.h"
#include "draft_heads/recurrent_test_data.h"
#include "open/drafter_report.h"
#include "open/parts.h"
#include "tests/lossless/test_heads.h"
#include "tests/open/hub_folders.h"

namespace outrider {
namespace {

using nlohmann::json;
using testing::HasSubstr;

const std::string kTarget = "home/models/target";

std::unique_ptr<FakeHead> family_module(const std::string& family) {
  auto head = std::make_unique<FakeHead>();
  fill_head(*head, family_module_golden(family));
  return head;
}

json verifier(const std::string& name) {
  return {{"speculators_config", {{"verifier", {{"name_or_path", name}}}}}};
}

std::string cached(const std::string& repository) { return "cache/outrider/models/" + repository; }

// A target, what lies around it, and the drafter to be found.
struct Case {
  std::string name;
  std::function<void(const HubFolders&)> make;
  std::string target, drafter;  // paths
  std::string method;           // as in statistics, in snake case
  Evidence evidence = {};
};

void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }

const std::string kTiny = HubFolders::snapshot("org", "Tiny-64M-Instruct");

// Modules that were trained with the target, among its tensors and beside it.
std::vector<Case> modules() {
  return {
      {"a module among the target's tensors",
       [](const HubFolders& at) {
         at.model("deepseek_v3", kTarget);
         at.head_inside(*family_module("deepseek_v3"), kTarget);
       },
       kTarget, kTarget, "mtp", Evidence::kInside},
      {"a module of GLM among the target's tensors",
       [](const HubFolders& at) {
         at.model("glm4_moe", HubFolders::snapshot("zai-org", "GLM-4.5-Air"));
         at.head_inside(*family_module("glm4_moe"), HubFolders::snapshot("zai-org", "GLM-4.5-Air"));
       },
       HubFolders::snapshot("zai-org", "GLM-4.5-Air"), HubFolders::snapshot("zai-org", "GLM-4.5-Air"), "mtp",
       Evidence::kInside},
      {"a module of Qwen under its own names",
       [](const HubFolders& at) {
         at.model("qwen3_5", kTarget, {{"mtp_num_hidden_layers", 1}});
         at.head_inside(*family_module("qwen3_5"), kTarget);
       },
       kTarget, kTarget, "mtp", Evidence::kInside},
      {"a module in the target's GGUF file",
       [](const HubFolders& at) { at.module_inside("glm4_moe", "home/GLM-4.5-Air-Q4_K_M.gguf"); },
       "home/GLM-4.5-Air-Q4_K_M.gguf", "home/GLM-4.5-Air-Q4_K_M.gguf", "mtp", Evidence::kInside},
  };
}

std::vector<Case> module_files() {
  return {
      {"a GGUF file with the module beside the target",
       [](const HubFolders& at) {
         at.gguf("glm4_moe", "home/GLM-4.5-Air-Q8_0.gguf", {{"general.name", "GLM 4.5 Air"}});
         at.module("glm4_moe", "home/GLM-4.5-Air-MTP-Q8_0.gguf", "GLM 4.5 Air");
       },
       "home/GLM-4.5-Air-Q8_0.gguf", "home/GLM-4.5-Air-MTP-Q8_0.gguf", "mtp", Evidence::kName},
      {"the module in MTP/ of the repository",
       [](const HubFolders& at) {
         const std::string repository = HubFolders::snapshot("unsloth", "GLM-4.7-Flash-GGUF");
         at.gguf("glm4_moe_lite", repository + "/GLM-4.7-Flash-UD-Q4_K_XL.gguf",
                 {{"general.name", "Glm-4.7-Flash"}});
         at.module("glm4_moe_lite", repository + "/MTP/GLM-4.7-Flash-MTP-F16.gguf", "Glm-4.7-Flash");
       },
       HubFolders::snapshot("unsloth", "GLM-4.7-Flash-GGUF") + "/GLM-4.7-Flash-UD-Q4_K_XL.gguf",
       HubFolders::snapshot("unsloth", "GLM-4.7-Flash-GGUF") + "/MTP/GLM-4.7-Flash-MTP-F16.gguf", "mtp",
       Evidence::kName},
      {"a module that says no name, beside a target that says none",
       [](const HubFolders& at) {
         at.gguf("qwen3_next", "home/a.gguf");
         at.module("qwen3_next", "home/mtp-b.gguf", "");
       },
       "home/a.gguf", "home/mtp-b.gguf", "mtp", Evidence::kShapes},
      {"an exported module in a directory beside the target",
       [](const HubFolders& at) {
         at.model("deepseek_v3", "home/models/DeepSeek-V3");
         at.head(*family_module("deepseek_v3"), "home/models/DeepSeek-V3-NextN");
       },
       "home/models/DeepSeek-V3", "home/models/DeepSeek-V3-NextN", "mtp", Evidence::kName},
      {"a module in a folder of the target's directory",
       [](const HubFolders& at) {
         at.model("glm4_moe_lite", kTarget);
         at.head(*family_module("glm4_moe_lite"), kTarget + "/mtp");
       },
       kTarget, kTarget + "/mtp", "mtp", Evidence::kShapes},
  };
}

// Heads that say by a name what they were made for.
std::vector<Case> named_heads() {
  return {
      {"speculators' head in the Hub's cache names its verifier",
       [](const HubFolders& at) {
         at.model("llama", kTiny);
         at.head(*make_recurrent("eagle3_speculators"),
                 HubFolders::snapshot("RedHatAI", "Tiny-64M-Instruct-speculator.eagle3"),
                 verifier("org/Tiny-64M-Instruct"));
       },
       kTiny, HubFolders::snapshot("RedHatAI", "Tiny-64M-Instruct-speculator.eagle3"), "eagle3",
       Evidence::kName},
      {"a verifier's quantisation in LM Studio's folder, its head in pull's",
       [](const HubFolders& at) {
         at.gguf("llama", ".lmstudio/models/someone/Tiny-64M-Instruct-GGUF/Tiny-64M-Instruct-Q8_0.gguf");
         at.head(*make_recurrent("peagle"), cached("org/a-head"), verifier("org/Tiny-64M-Instruct"));
       },
       ".lmstudio/models/someone/Tiny-64M-Instruct-GGUF/Tiny-64M-Instruct-Q8_0.gguf", cached("org/a-head"),
       "peagle", Evidence::kName},
      {"a head with a card that names its base model",
       [](const HubFolders& at) {
         at.model("llama", kTiny);
         at.head(*make_medusa(kSmallTarget, 3), HubFolders::snapshot("lab", "Heads"));
         at.text(HubFolders::snapshot("lab", "Heads") + "/README.md",
                 "---\nlicense: apache-2.0\nbase_model:\n- org/Tiny-64M-Instruct\ntags:\n- medusa\n---\n# "
                 "Heads\n");
       },
       kTiny, HubFolders::snapshot("lab", "Heads"), "medusa", Evidence::kName},
      {"a head that the table of published ones knows",
       [](const HubFolders& at) {
         at.model("llama", "home/Llama-3.1-8B-Instruct");
         at.head(*make_recurrent("eagle3"), HubFolders::snapshot("yuhuili", "EAGLE3-LLaMA3.1-Instruct-8B"));
       },
       "home/Llama-3.1-8B-Instruct", HubFolders::snapshot("yuhuili", "EAGLE3-LLaMA3.1-Instruct-8B"), "eagle3",
       Evidence::kName},
  };
}

std::vector<Case> other_heads() {
  return {
      {"a head with the target's name and its kind as its own",
       [](const HubFolders& at) {
         at.model("llama", kTiny);
         at.head(*make_recurrent("eagle3"), HubFolders::snapshot("AngelSlim", "Tiny-64M-Instruct_eagle3"));
       },
       kTiny, HubFolders::snapshot("AngelSlim", "Tiny-64M-Instruct_eagle3"), "eagle3", Evidence::kName},
      {"a head with the target's fingerprint before one with its shapes",
       [](const HubFolders& at) {
         at.model("llama", kTarget);
         at.head(*make_medusa(kSmallTarget, 3), "home/models/a-head");
         at.head(*make_dflash(kSmallTarget), cached("us/trained"),
                 {{"outrider_target", target_fingerprint(*open_model(at.at(kTarget)))},
                  {"outrider_agreement", 0.4}});
       },
       kTarget, cached("us/trained"), "dflash", Evidence::kFingerprint},
      {"a block drafter beside the target that names none",
       [](const HubFolders& at) {
         at.model("llama", kTarget);
         at.head(*make_dflash(kSmallTarget), "home/models/target-dflash");
       },
       kTarget, "home/models/target-dflash", "dflash", Evidence::kName},
      {"a head of llama.cpp's converter names its base model",
       [](const HubFolders& at) {
         at.gguf("llama", "home/Tiny-64M-Instruct-Q8_0.gguf");
         at.eagle_gguf("cache/llama.cpp/org_eagle.gguf", "org/Tiny-64M-Instruct");
       },
       "home/Tiny-64M-Instruct-Q8_0.gguf", "cache/llama.cpp/org_eagle.gguf", "eagle3", Evidence::kName},
      {"the assistant of Gemma in the Hub's cache",
       [](const HubFolders& at) {
         at.model("gemma4", HubFolders::snapshot("google", "gemma-4-E2B-it"));
         at.head(*make_assistant(false), HubFolders::snapshot("gg-hf-am", "gemma-4-E2B-it-assistant"));
       },
       HubFolders::snapshot("google", "gemma-4-E2B-it"),
       HubFolders::snapshot("gg-hf-am", "gemma-4-E2B-it-assistant"), "assistant", Evidence::kName},
  };
}

std::vector<Case> draft_models() {
  return {
      {"a smaller model of the target's vocabulary among Ollama's blobs",
       [](const HubFolders& at) {
         at.unknown_model("home/big");
         at.ollama("outrider-draft-b", "small", "Small");
       },
       "home/big", "ollama/blobs/sha256-" + std::string(64, 'b'), "draft_target", Evidence::kVocabulary},
      {"of two smaller models the one of the target's series",
       [](const HubFolders& at) {
         at.unknown_model("home/Story2.5-6B-Instruct");
         at.model("outrider-draft-b", HubFolders::snapshot("org", "Fable-0.5B-Instruct"));
         at.model("outrider-draft-a", HubFolders::snapshot("org", "Story2.5-0.5B-Instruct"));
       },
       "home/Story2.5-6B-Instruct", HubFolders::snapshot("org", "Story2.5-0.5B-Instruct"), "draft_target",
       Evidence::kSeries},
  };
}

std::vector<Case> folders() {
  std::vector<Case> all;
  for (const auto& some : {modules(), module_files(), named_heads(), other_heads(), draft_models()})
    all.insert(all.end(), some.begin(), some.end());
  return all;
}

// Files around a target that are not for it.
struct Decoy {
  std::string name;
  std::function<void(const HubFolders&)> make;
  std::string target;
  std::string reason;  // a part of the line about what was left out; empty: nothing looks like a drafter
};

void PrintTo(const Decoy& one, std::ostream* out) { *out << one.name; }

std::vector<Decoy> other_heads_around() {
  const auto llama_and = [](const std::string& to, const json& config) {
    return [=](const HubFolders& at) {
      at.model("llama", kTarget);
      at.head(*make_recurrent("eagle3"), to, config);
    };
  };
  return {
      {"a head in a cache for another model of the same shape",
       llama_and(HubFolders::snapshot("lab", "Other-eagle3"), verifier("org/Other-64M")), kTarget,
       "made for other-64m"},
      {"a head beside the target for another model of the same shape",
       llama_and("home/models/other-eagle3", verifier("org/Other-64M")), kTarget, "made for other-64m"},
      {"a head for a larger model",
       [](const HubFolders& at) {
         at.model("llama", kTarget);
         at.head(*make_medusa(kDefaultTarget, 2), "home/models/medusa");
       },
       kTarget, "made for hidden size 256"},
      {"a head with the fingerprint of another target",
       llama_and(cached("us/head"), {{"outrider_target", "0123456789abcdef"}}), kTarget, "fingerprint"},
      {"a head in a cache that names no target", llama_and(cached("some/head"), {}), kTarget,
       "names no target"},
  };
}

std::vector<Decoy> other_files_around() {
  return {
      {"a configuration with modules that the files do not have",
       [](const HubFolders& at) { at.model("deepseek_v3", kTarget); }, kTarget, "files do not have"},
      {"the module of another model beside the target",
       [](const HubFolders& at) {
         at.gguf("glm4_moe", "home/models/GLM-4.5-Air.gguf", {{"general.name", "GLM 4.5 Air"}});
         at.module("glm4_moe", "home/models/Other-MTP.gguf", "Other Model 9B");
       },
       "home/models/GLM-4.5-Air.gguf", "a module of other-model-9b"},
      {"a smaller model with another vocabulary",
       [](const HubFolders& at) {
         at.unknown_model(kTarget);
         at.model("llama", "home/models/llama");
       },
       kTarget, "vocabulary of 288 tokens"},
      {"a smaller model that makes vectors",
       [](const HubFolders& at) {
         at.unknown_model(kTarget);
         at.model("outrider-draft-b", "home/models/embedder", {{"architectures", {"LlamaModel"}}});
       },
       kTarget, "makes vectors"},
      {"the target again, a projector and a damaged head",
       [](const HubFolders& at) {
         at.gguf("llama", "home/models/model-Q8_0.gguf");
         at.gguf("llama", "home/models/model-F16.gguf");
         at.text("home/models/mmproj-model.gguf", "GGUF");
         at.text("home/models/head/config.json", "{}");
         at.text("home/models/head/medusa_lm_head.safetensors", "cut off");
       },
       "home/models/model-Q8_0.gguf", "medusa_lm_head.safetensors"},
  };
}

std::vector<Decoy> decoys() {
  std::vector<Decoy> all = other_heads_around();
  for (const Decoy& one : other_files_around()) all.push_back(one);
  return all;
}

// An engine as commands open one, and what was found for it.
struct Opened {
  std::unique_ptr<Engine> engine;
  OpenedFiles files;
};

Opened open_with(const std::filesystem::path& target, const std::string& speculative) {
  Names names;
  names.options.model = target;
  names.options.threads = 1;
  names.options.max_batch = 1;
  names.options.context = 64;
  names.options.speculation = parse_speculative(speculative)->options;
  names.finds_drafter = true;
  Opened opened;
  auto files = open_files(std::move(names));
  EXPECT_TRUE(files.ok()) << files.error().message;
  if (!files.ok()) return opened;
  opened.files = std::move(files).value();
  auto parts = open_parts(opened.files);
  EXPECT_TRUE(parts.ok()) << parts.error().message;
  if (parts.ok()) opened.engine = Engine::assemble(std::move(parts).value());
  return opened;
}

std::vector<TokenId> text_of(Engine& engine, double temperature) {
  Request request;
  request.prompt = {5, 9, 5, 9, 17};
  request.max_tokens = 16;
  request.ignore_eos = true;
  request.sampling.temperature = temperature;
  request.sampling.seed = 3;
  const auto done = engine.generate(request);
  EXPECT_TRUE(done.ok()) << done.error().message;
  return done.ok() ? done->tokens : std::vector<TokenId>();
}

void expect_plain_text(Engine& engine, const std::filesystem::path& target) {
  const Opened plain = open_with(target, "none");
  ASSERT_NE(plain.engine, nullptr);
  for (const double temperature : {0.0, 0.8})
    EXPECT_EQ(text_of(engine, temperature), text_of(*plain.engine, temperature)) << temperature;
}

class FoundDrafters : public testing::TestWithParam<Case> {};

TEST_P(FoundDrafters, AreTheTargets) {
  const HubFolders folders;
  const Case& one = GetParam();
  one.make(folders);
  const Opened opened = open_with(folders.at(one.target), "auto,policy=fixed");
  ASSERT_NE(opened.engine, nullptr);
  for (const DrafterLine& line : drafter_lines(opened.files.search)) SCOPED_TRACE(text_of(line));
  ASSERT_FALSE(opened.files.search.found.empty());
  const FoundDrafter& found = opened.files.search.found.front();
  EXPECT_EQ(found.path, folders.at(one.drafter));
  EXPECT_EQ(found.evidence, one.evidence) << evidence_text(found.evidence);
  EXPECT_EQ(snake_name(opened.engine->info().drafter), "suffix+ngram+" + one.method);
  EXPECT_TRUE(opened.files.search.tried.empty());
  expect_plain_text(*opened.engine, folders.at(one.target));
}

INSTANTIATE_TEST_SUITE_P(All, FoundDrafters, testing::ValuesIn(folders()));

class DecoyDrafters : public testing::TestWithParam<Decoy> {};

TEST_P(DecoyDrafters, AreLeftOut) {
  const HubFolders folders;
  const Decoy& one = GetParam();
  one.make(folders);
  const Opened opened = open_with(folders.at(one.target), "auto,policy=fixed");
  ASSERT_NE(opened.engine, nullptr);
  const DrafterSearch& search = opened.files.search;
  EXPECT_TRUE(search.found.empty()) << text_of(drafter_lines(search).front());
  EXPECT_EQ(snake_name(opened.engine->info().drafter), "suffix+ngram");
  std::string reasons;
  for (const DrafterLine& line : drafter_lines(search)) reasons += text_of(line) + "\n";
  EXPECT_THAT(reasons, HasSubstr(one.reason));
  expect_plain_text(*opened.engine, folders.at(one.target));
}

INSTANTIATE_TEST_SUITE_P(All, DecoyDrafters, testing::ValuesIn(decoys()));

TEST(FoundDraftersTest, CoversTwentyFoldersAndTenDecoys) {
  EXPECT_GE(folders().size(), 20u);
  EXPECT_GE(decoys().size(), 10u);
}

}  // namespace
}  // namespace outrider
