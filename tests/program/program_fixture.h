// SPDX-License-Identifier: Apache-2.0
// Runs the built program in a temporary folder per test.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

namespace outrider {

using Json = nlohmann::json;

inline const std::string kModel = OUTRIDER_SOURCE_DIR "/tests/data/models/llama";
inline const std::string kOtherVocabulary = OUTRIDER_SOURCE_DIR "/tests/data/formats/qwen2";

struct Outcome {
  int exit_code = -1;
  std::string output;
  std::string errors;
};

std::string contents(const std::filesystem::path& path);

class ProgramTest : public ::testing::Test {
 protected:
  ProgramTest();
  ~ProgramTest() override;

  std::string write(const std::string& name, const std::string& text) const;
  // A copy of the test model with a chat template.
  std::string chat_model() const;

  // `arguments` are shell text; `before` is a prefix that sets variables or pipes input.
  Outcome run(const std::string& arguments, const std::string& before = "") const;
  Json run_json(const std::string& arguments, const std::string& before = "") const;
  void expect_refused(const std::string& arguments, int exit_code, const std::string& part,
                      const std::string& before = "") const;
  // Ctrl-C ends an answer of `outrider chat` with these arguments, and the conversation goes on.
  void expect_interrupt_ends_answer(const std::string& arguments) const;

  std::filesystem::path folder_;
};

}  // namespace outrider
