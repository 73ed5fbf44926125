// SPDX-License-Identifier: Apache-2.0
// `outrider chat` with pipes instead of a terminal.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "tests/program/program_fixture.h"

namespace outrider {
namespace {

TEST_F(ProgramTest, ChatAnswersEveryLineOfAPipe) {
  const std::string model = chat_model();
  const std::string chat = "chat " + model + " --max-tokens 4 --ignore-eos --speculative ngram";
  const Outcome once = run(chat, "printf 'hi\\n/exit\\nlost\\n' |");
  EXPECT_EQ(once.exit_code, 0) << once.errors;
  EXPECT_FALSE(once.output.empty());
  EXPECT_EQ(once.errors, "");
  const Outcome again = run(chat, "printf 'hi\\n/reset\\nhi\\n/stats\\n' |");
  EXPECT_EQ(again.output, once.output + once.output);
  EXPECT_NE(again.errors.find("ngram: 4 tokens"), std::string::npos) << again.errors;
  EXPECT_NE(run(chat, "echo /rest |").errors.find("unknown command /rest"), std::string::npos);
}

TEST_F(ProgramTest, GenerateAsksThroughTheTemplateOnlyIfToldTo) {
  const std::string common = "generate " + chat_model() + " --max-tokens 6 --ignore-eos --json ";
  const auto prompt = [&](const std::string& arguments) {
    return run_json(common + arguments)["prompt_token_ids"].get<std::vector<int>>();
  };
  EXPECT_EQ(prompt("--chat -p hi"), prompt("-p 'user: hi assistant:'"));
  EXPECT_NE(prompt("--chat -p hi"), prompt("-p hi"));
  EXPECT_EQ(prompt("--system 'be brief' -p hi"), prompt("-p 'system: be brief user: hi assistant:'"));
  expect_refused(common + "--chat --prompt-ids 1,2", 2, "found both");
  expect_refused("generate " + kModel + " --chat -p hi", 1, "chat template");
}

TEST_F(ProgramTest, AnUnreadableTemplateBlocksChatsOnly) {
  const std::string model = chat_model();
  Json config = Json::parse(contents(model + "/tokenizer_config.json"));
  config["chat_template"] = "{{ if .System }}{{ .System }}{{ end }}";
  std::ofstream(std::filesystem::path(model) / "tokenizer_config.json") << config.dump();
  const std::string common = "generate " + model + " --max-tokens 2 --ignore-eos -p hi";
  EXPECT_EQ(run(common).exit_code, 0);
  expect_refused(common + " --chat", 1, "chat-model/tokenizer_config.json: chat template");
  expect_refused(common + " --chat", 1, "--chat-template FILE");
}

TEST_F(ProgramTest, InterruptEndsAnAnswerNotTheConversation) {
  expect_interrupt_ends_answer(OUTRIDER_SOURCE_DIR "/models/outrider-small --kernels reference");
}

TEST_F(ProgramTest, ChatSaysWhenTheConversationNoLongerFits) {
  const std::string chat = "chat " + chat_model() + " --ctx 32 --max-tokens 2";
  const Outcome outcome = run(chat, "printf '%0100d\\n' 0 |");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.errors.find("/reset starts a new one"), std::string::npos) << outcome.errors;
}

}  // namespace
}  // namespace outrider
