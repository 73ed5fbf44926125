// SPDX-License-Identifier: Apache-2.0
// `serve --remote-drafting` and `generate --server` as programs that talk to each other.
#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <future>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/network/shaped_proxy.h"
#include "tests/program/program_fixture.h"
#include "tests/serving/serve_process.h"

namespace outrider {
namespace {

constexpr const char* kPrompt =
    "-p 'Once upon a time, Lily found a red ball. Lily and the red ball' --max-tokens 48";

class DraftingProgram : public ProgramTest {
 protected:
  std::string at(int port) const { return fmt::format("--server ws://127.0.0.1:{}", port); }
};

TEST_F(DraftingProgram, GivesTheTextOfLocalDecoding) {
  const ServeProcess server({"--remote-drafting"});
  ASSERT_TRUE(server.wait_until_ready());
  for (const std::string sampling : {"", " --temperature 0.8 --seed 5"}) {
    const std::string request = kPrompt + sampling;
    const Json local = run_json("generate builtin --json " + request);
    for (const std::string drafter :
         {"none", "ngram", "suffix", "draft_target", "draft_target,policy=auto", "auto"}) {
      const Json remote = run_json(
          fmt::format("generate builtin --json {} {} --speculative {}", request, at(server.port()), drafter));
      EXPECT_EQ(remote["token_ids"], local["token_ids"]) << drafter;
      EXPECT_EQ(remote["text"], local["text"]);
      EXPECT_EQ(remote["finish_reason"], local["finish_reason"]);
      const size_t verdicts = remote["remote"]["verdicts"];
      const size_t tokens = local["token_ids"].size();
      EXPECT_TRUE(drafter == "none" ? verdicts == tokens : verdicts < tokens) << drafter << " " << verdicts;
      EXPECT_GE(remote["remote"]["ahead"], remote["remote"]["ahead_used"]);
    }
  }
  const Outcome text = run(fmt::format("generate builtin {} {}", kPrompt, at(server.port())));
  EXPECT_EQ(text.output, run(fmt::format("generate builtin {}", kPrompt)).output);
}

TEST_F(DraftingProgram, DraftsAsWellWithTheServersStatesAsBesideIt) {
  for (const std::string head : {"eagle3", "moa"}) {
    const std::string speculative = fmt::format(
        "{0},speculative_model={1}/models/outrider-{0},max_draft_len=4", head, OUTRIDER_SOURCE_DIR);
    const ServeProcess server({"--remote-drafting", "--speculative", speculative});
    ASSERT_TRUE(server.wait_until_ready());
    const std::string generate =
        fmt::format("generate builtin --json {} --speculative {} ", kPrompt, speculative);
    const Json local = run_json(generate);
    for (const std::string type : {"bf16", "q8"}) {
      const Json remote = run_json(generate + at(server.port()) + " --server-states " + type);
      EXPECT_EQ(remote["token_ids"], local["token_ids"]) << head;
      const double steps = local["speculation"]["steps"], verdicts = remote["remote"]["verdicts"];
      EXPECT_LE(verdicts, 1.2 * steps + 1) << head << " " << type;
    }
  }
}

// A server of several models, of which one has the tokenizer of the client's.
class DraftingFleet : public DraftingProgram {
 protected:
  std::vector<std::string> options(const std::vector<std::string>& more = {}) const {
    const std::string list = (folder_ / "list.yaml").string();
    std::ofstream(list) << "models:\n  - model: " OUTRIDER_SOURCE_DIR
                           "/models/outrider-small\n    name: org/small\n  - model: " OUTRIDER_SOURCE_DIR
                           "/tests/data/models/llama\n    name: other\n";
    std::vector<std::string> words = {"--models", list, "--remote-drafting"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
};

TEST_F(DraftingFleet, TheModelThatIsNamedVerifies) {
  const ServeProcess server(options(), {}, "");
  ASSERT_TRUE(server.wait_until_ready());
  const Json local = run_json(fmt::format("generate builtin --json {}", kPrompt));
  const std::string generate = fmt::format("generate builtin --json {} {}", kPrompt, at(server.port()));
  for (const std::string drafter : {"none", "draft_target"}) {
    const Json remote = run_json(generate + " --server-model org/small --speculative " + drafter);
    EXPECT_EQ(remote["token_ids"], local["token_ids"]) << drafter;
  }
  expect_refused(generate, 1, "expected the name of a model");
  expect_refused(generate + " --server-model nobody", 1, "no model 'nobody'");
  expect_refused(generate + " --server-model other", 1, "tokenizer of other");
  const ServeProcess one({"--remote-drafting", "--served-model-name", "mine"});
  ASSERT_TRUE(one.wait_until_ready());
  const std::string alone = fmt::format("generate builtin --json {} {} ", kPrompt, at(one.port()));
  EXPECT_EQ(run_json(alone + "--server-model mine")["token_ids"], local["token_ids"]);
  expect_refused(alone + "--server-model yours", 1, "no model 'yours'");
}

// The client goes on with the engine that takes the place of one that was killed.
TEST_F(DraftingFleet, AnEngineThatDiesCostsTime) {
  const ServeProcess server(options({"--kernels", "reference"}), {}, "");
  ASSERT_TRUE(server.wait_until_ready());
  const std::string request = "generate builtin --json --ignore-eos --max-tokens 400 -p 'Once upon a time' ";
  const Json local = run_json(request);
  auto remote = std::async(std::launch::async, [&] {
    return run_json(request + at(server.port()) +
                    " --server-model org/small --speculative ngram --server-offline never");
  });
  int engine = 0;
  for (int i = 0; i < 1000 && engine == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    const Json model = server.stats()["models"][0];
    if (model["state"] == "loaded" && model["running"] == 1) engine = model["process"];
  }
  ASSERT_NE(engine, 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  ::kill(engine, SIGKILL);
  EXPECT_EQ(remote.get()["token_ids"], local["token_ids"]);
  EXPECT_EQ(server.stats()["models"][0]["starts"], 2);
}

TEST_F(DraftingProgram, KeepsPrivateTextHere) {
  const std::string speculative =
      fmt::format("moa,speculative_model={}/models/outrider-moa-tli1", OUTRIDER_SOURCE_DIR);
  const ServeProcess server({"--remote-drafting", "--speculative", speculative});
  ASSERT_TRUE(server.wait_until_ready());
  const std::string generate = fmt::format(
      "generate builtin --max-tokens 16 --ignore-eos {} -p 'Once upon a time, ' ", at(server.port()));
  const Json written =
      run_json(fmt::format("{} --json --speculative {} --private 'Lily found a red'", generate, speculative));
  EXPECT_EQ(written["origins"], Json::parse(R"([{"origin":"offline","tokens":16}])"));
  EXPECT_EQ(written["remote"]["verdicts"], 1);  // that brings the states of the safe text
  EXPECT_EQ(
      run(fmt::format("{} --speculative {} --private 'Lily found a red'", generate, speculative)).output,
      written["text"].get<std::string>() + "\n");
  expect_refused(generate + " --speculative ngram --private b", 2, "write alone");
  expect_refused(generate + " --private b --private-file c", 2, "found both");
  expect_refused("generate builtin -p a --private b", 2, "expected --private with --server");
}

TEST_F(DraftingProgram, ChatsAsWithTheModelHere) {
  const ServeProcess server({"--remote-drafting"});
  ASSERT_TRUE(server.wait_until_ready());
  const std::string chat = "chat builtin --max-tokens 24 --ignore-eos --speculative draft_target ";
  const std::string lines = "printf 'Hello, Lily\\nAnd then?\\n/reset\\nThe end\\n/stats\\n' |";
  const Outcome local = run(chat, lines), remote = run(chat + at(server.port()), lines);
  EXPECT_EQ(remote.exit_code, 0) << remote.errors;
  EXPECT_EQ(remote.output, local.output);
  EXPECT_NE(remote.errors.find(" verdicts, "), std::string::npos) << remote.errors;
  expect_refused(chat + "--server http://127.0.0.1:1", 2, "expected a server as in ws://", "echo a |");
  expect_refused(chat + at(server.port()) + " --server-key-file /nonexistent", 1, "no such file", "echo a |");
  expect_refused("chat " + kModel + " " + at(server.port()), 1, "chat template", "echo a |");
}

TEST_F(DraftingProgram, ChatsPrivatelyUntilReset) {
  const std::string speculative =
      fmt::format("moa,speculative_model={}/models/outrider-moa-tli1", OUTRIDER_SOURCE_DIR);
  const ServeProcess server({"--remote-drafting", "--speculative", speculative});
  ASSERT_TRUE(server.wait_until_ready());
  const std::string chat =
      fmt::format("chat builtin --max-tokens 12 --ignore-eos {} --speculative ", at(server.port()));
  const std::string lines =
      "printf '/private My letter\\n/stats\\nAnd then?\\n/stats\\n/reset\\nHi\\n/stats\\n' |";
  const Outcome outcome = run(chat + speculative, lines);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  std::vector<std::string> alone;  // tokens of each answer that were written without the server
  std::istringstream errors(outcome.errors);
  for (std::string line; std::getline(errors, line);) {
    if (line.starts_with("ws://")) alone.push_back(line.substr(line.rfind(", ") + 2));
  }
  EXPECT_EQ(alone, (std::vector<std::string>{"12 tokens offline", "12 tokens offline", "0 tokens offline"}));
  expect_refused(chat + "ngram", 2, "write alone", "echo /private b |");
}

TEST_F(DraftingProgram, AChatThatIsCutOffGoesOnAloneInColour) {
  if (std::system("command -v script >/dev/null") != 0)
    GTEST_SKIP() << "no script(1) to make a terminal with";
  ServeProcess server({"--remote-drafting", "--kernels", "reference"});
  ASSERT_TRUE(server.wait_until_ready());
  const std::string out = (folder_ / "typescript").string();
  const std::string chat = fmt::format(
      "{} chat builtin --max-tokens 900 --ignore-eos --speculative draft_target,max_draft_len=1 "
      "--server-offline-after 0.2 {}",
      OUTRIDER_PROGRAM, at(server.port()));
  const std::string line = fmt::format(
      "printf 'Once upon a time\\n/exit\\n' | env -u NO_COLOR script -qefc '{}' {} >/dev/null", chat, out);
  auto ended = std::async(std::launch::async, [&] { return std::system(line.c_str()); });
  const auto has_begun = [&] {
    const std::string text = contents(out);
    const size_t begin = text.find("/help lists");
    return begin != std::string::npos && text.size() > begin + 100;  // the message is echoed, too
  };
  for (int i = 0; i < 400 && !has_begun(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  server.end(SIGKILL);
  EXPECT_EQ(ended.get(), 0);
  const std::string text = contents(out);
  EXPECT_NE(text.find("\x1b[33m[offline] "), std::string::npos) << text;
  EXPECT_EQ(text.find("was lost"), std::string::npos) << text;
}

TEST_F(DraftingProgram, InterruptEndsAnAnswerOfTheServer) {
  const ServeProcess server({"--remote-drafting", "--kernels", "reference"});
  ASSERT_TRUE(server.wait_until_ready());
  expect_interrupt_ends_answer("builtin " + at(server.port()));
  EXPECT_TRUE(server.wait_until_free());
}

TEST_F(DraftingProgram, GoesThroughANetworkThatBreaks) {
  const ServeProcess server({"--remote-drafting"});
  ASSERT_TRUE(server.wait_until_ready());
  auto proxy = ShapedProxy::start({.target_port = server.port(),
                                   .shape = {.round_trip_ms = 4, .bits_per_second = 50e6},
                                   .cut_after = [](int64_t connection) { return 200 + 37 * connection; }});
  ASSERT_TRUE(proxy.ok()) << proxy.error().message;
  const std::string generate = std::string("generate builtin --json ") + kPrompt;
  const Json remote =
      run_json(fmt::format("{} {} --speculative ngram,policy=fixed", generate, at((*proxy)->port())));
  EXPECT_EQ(remote["token_ids"], run_json(generate)["token_ids"]);
  EXPECT_GT(remote["remote"]["reconnects"], 0);
  EXPECT_GT((*proxy)->counts().cuts, 0);
}

TEST_F(DraftingProgram, RefusesWhatItCannotDo) {
  const std::string generate = "generate builtin -p a --server ";
  expect_refused(generate + "http://127.0.0.1:1", 2, "expected a server as in ws://");
  expect_refused(generate + "ws://127.0.0.1:1 --show-draft", 2, "expected --server without");
  expect_refused(generate + "ws://127.0.0.1:1 --speculative early_exit", 2, "runs layers of the target");
}

}  // namespace
}  // namespace outrider
