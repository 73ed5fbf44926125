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
  EXPECT_EQ(run(chat, "echo /rest |").output, run(chat, "printf '\"\"\"\\n/rest\\n\"\"\"\\n' |").output);
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
  EXPECT_EQ(
      run(common + " --chat --chat-template " + write("good.jinja", "{{ messages[0].content }}")).exit_code,
      0);
}

// A file of its own comes before the configuration's template, also where it is cut.
TEST_F(ProgramTest, ACutTemplateFileBlocksChatsOnly) {
  const std::string model = chat_model();
  std::ofstream(std::filesystem::path(model) / "chat_template.jinja") << "{% for m in messages %}{{ m.con";
  const std::string common = "generate " + model + " --max-tokens 2 --ignore-eos -p hi";
  EXPECT_EQ(run(common).exit_code, 0);
  expect_refused(common + " --chat", 1, "chat-model/chat_template.jinja: chat template");
  EXPECT_EQ(
      run(common + " --chat --chat-template " + write("good.jinja", "{{ messages[0].content }}")).exit_code,
      0);
}

void set_template(const std::string& model, const std::string& text) {
  const std::filesystem::path file = std::filesystem::path(model) / "tokenizer_config.json";
  Json config = Json::parse(contents(file));
  config["chat_template"] = text;
  std::ofstream(file) << config.dump();
}

// A chat is sampled as the model's makers ask, unless an option says otherwise; a text goes on greedily.
TEST_F(ProgramTest, ChatsFollowTheRecommendedSampling) {
  const std::string model = chat_model();
  const std::string common = "generate " + model + " --max-tokens 16 --ignore-eos -p hi";
  const std::string greedy = run(common + " --chat").output, text = run(common).output;
  std::ofstream(std::filesystem::path(model) / "generation_config.json")
      << R"({"do_sample": true, "temperature": 3.0, "top_k": 50})";
  const std::string sampled = run(common + " --chat").output;
  EXPECT_NE(sampled, greedy);
  EXPECT_EQ(sampled, run(common + " --chat --temperature 3 --top-k 50").output);
  EXPECT_EQ(greedy, run(common + " --chat --temperature 0").output);
  EXPECT_EQ(text, run(common).output);
  EXPECT_EQ(run("chat " + model + " --max-tokens 16 --ignore-eos", "echo hi |").output, sampled);
}

TEST_F(ProgramTest, ThinkingIsSwitchedAndShownApart) {
  const std::string model = chat_model();
  set_template(model,
               "{{ messages[0].content }} assistant:{% if enable_thinking is defined and not "
               "enable_thinking %}no{% else %}<think>{% endif %}{{ style }}");
  const auto prompt = [&](const std::string& options) {
    return run_json("generate " + model + " --max-tokens 2 --ignore-eos --json --chat -p hi" +
                    options)["prompt_token_ids"];
  };
  const auto ids = [&](const std::string& text) {
    return run_json("generate " + model + " --max-tokens 2 --ignore-eos --json -p '" + text +
                    "'")["prompt_token_ids"];
  };
  EXPECT_EQ(prompt(""), ids("hi assistant:<think>"));
  EXPECT_EQ(prompt(" --think on"), ids("hi assistant:<think>"));
  EXPECT_EQ(prompt(" --think off"), ids("hi assistant:no"));
  EXPECT_EQ(prompt(" --think off --chat-template-kwargs '{\"style\": \"x\"}'"), ids("hi assistant:nox"));
  const std::string other = write("other.jinja", "{{ messages[0].content }}!");
  EXPECT_EQ(prompt(" --chat-template " + other), ids("hi!"));
  const std::string chat = "chat " + model + " --max-tokens 8 --ignore-eos";
  const Outcome thinks = run(chat, "echo hi |"), answers = run(chat + " --think off", "echo hi |");
  EXPECT_EQ(thinks.output, "\n");
  EXPECT_FALSE(thinks.errors.empty());
  EXPECT_GT(answers.output.size(), 1u);
  EXPECT_EQ(answers.errors, "");
  EXPECT_EQ(run(chat, "printf '/think off\\nhi\\n' |").output, answers.output);
  const std::string once = "generate " + model + " --chat -p hi --max-tokens 4";
  const Outcome thought = run(once), said = run(once + " --think off");
  EXPECT_EQ(thought.output, "\n");
  const std::string cut = "(cut after 4 tokens; --max-tokens allows more)\n";
  EXPECT_TRUE(thought.errors.ends_with(cut) && thought.errors.size() > cut.size()) << thought.errors;
  EXPECT_GT(said.output.size(), 1u);
  EXPECT_EQ(said.errors, cut);
  expect_refused("generate " + model + " --chat -p hi --think maybe", 2, "on");
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
