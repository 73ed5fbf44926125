// SPDX-License-Identifier: Apache-2.0
// `serve --remote-drafting`, `generate --server` and `netsim` as programs that talk to each other.
#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <future>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

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
      "--offline-after 0.2 {}",
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
  const std::string net = (folder_ / "net").string(), out = (folder_ / "out").string();
  const std::string script = fmt::format(
      "{0} netsim 127.0.0.1:{1} --network metro --delay 4 --cut-bytes 450 --seed 2 >{2} & pid=$!; "
      "while ! grep -q forwarding {2}; do sleep 0.02; done; "
      "port=$(sed 's/^forwarding 127.0.0.1:\\([0-9]*\\) .*/\\1/' {2}); "
      "{0} generate builtin --json {3} --server ws://127.0.0.1:$port --speculative ngram,policy=fixed >{4}; "
      "kill -INT $pid; wait $pid",
      OUTRIDER_PROGRAM, server.port(), net, kPrompt, out);
  ASSERT_EQ(std::system(script.c_str()), 0);
  const Json remote = Json::parse(contents(out), nullptr, false);
  ASSERT_TRUE(remote.is_object()) << contents(out);
  EXPECT_EQ(remote["token_ids"], run_json(std::string("generate builtin --json ") + kPrompt)["token_ids"]);
  EXPECT_GT(remote["remote"]["reconnects"], 0);
  EXPECT_NE(contents(net).find(" cut, "), std::string::npos) << contents(net);
}

TEST_F(DraftingProgram, MeasuresEveryNetwork) {
  const ServeProcess server({"--remote-drafting"});
  ASSERT_TRUE(server.wait_until_ready());
  const std::string bench =
      "bench remote builtin --limit 1 --ignore-eos --speculative suffix " + at(server.port());
  const Json json = run_json(bench + " --max-tokens 96 --json");
  ASSERT_EQ(json["networks"].size(), 4u);
  for (const Json& network : json["networks"]) {
    EXPECT_EQ(network["tokens"], 96);
    EXPECT_GT(network["tokens_per_second"], 0);
    EXPECT_GT(network["streaming_tokens_per_second"], 0);
  }
  // A single token has no rate.
  const std::string text = run(bench + " --max-tokens 1").output;
  EXPECT_NE(text.find("this machine: - tok/s"), std::string::npos) << text;
  expect_refused("bench remote builtin --limit 1", 2, "expected the server's address");
}

TEST_F(DraftingProgram, RefusesWhatItCannotDo) {
  const std::string generate = "generate builtin -p a --server ";
  expect_refused(generate + "http://127.0.0.1:1", 2, "expected a server as in ws://");
  expect_refused(generate + "ws://127.0.0.1:1 --show-draft", 2, "expected --server without");
  expect_refused(generate + "ws://127.0.0.1:1 --speculative early_exit", 2, "runs layers of the target");
  expect_refused("netsim nowhere", 2, "expected HOST:PORT");
}

}  // namespace
}  // namespace outrider
