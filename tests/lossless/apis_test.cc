// SPDX-License-Identifier: Apache-2.0
// The C API and the C++ API give the tokens of the program, with every drafter, greedily and sampled.
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "outrider/open.h"
#include "outrider/outrider.h"
#include "tests/support/built_in_methods.h"

namespace outrider {
namespace {

using Tokens = std::vector<TokenId>;
using Parameters = std::vector<std::pair<std::string, std::string>>;

constexpr std::string_view kText = "one two three one two three one two";

Tokens tokens_of_program(const std::string& method, const Parameters& parameters) {
  std::string command = std::string(OUTRIDER_PROGRAM) + " generate builtin --json --cache-dir none -p '" +
                        std::string(kText) + "' --speculative '" + method + "'";
  for (const auto& [name, value] : parameters) command += " --" + name + " " + value;
  const auto close = [](std::FILE* pipe) { pclose(pipe); };
  const std::unique_ptr<std::FILE, decltype(close)> pipe(popen(command.c_str(), "r"), close);
  std::string output(1 << 16, '\0');
  output.resize(std::fread(output.data(), 1, output.size(), pipe.get()));
  return nlohmann::json::parse(output).at("token_ids").get<Tokens>();
}

std::string parameter_name(std::string option) {
  for (char& c : option) c = c == '-' ? '_' : c;
  return option;
}

Tokens tokens_of_cpp(const OpenedEngine& opened, const Parameters& parameters) {
  Request request = opened.request;
  request.prompt = opened.engine->tokenize(kText);
  for (const auto& [name, value] : parameters) {
    const Status set = set_parameter(request, parameter_name(name), std::vector{value});
    EXPECT_TRUE(set.ok()) << set.error().message;
  }
  const auto done = opened.engine->generate(std::move(request));
  EXPECT_TRUE(done.ok());
  return done->tokens;
}

Tokens tokens_of_c(outrider_engine* engine, const Parameters& parameters) {
  int32_t* prompt = nullptr;
  size_t count = 0;
  EXPECT_EQ(outrider_tokenize(engine, kText.data(), kText.size(), true, true, &prompt, &count), OUTRIDER_OK);
  outrider_request* request = outrider_request_new(engine);
  outrider_request_set_prompt(request, prompt, count);
  outrider_free(prompt);
  for (const auto& [name, value] : parameters)
    EXPECT_EQ(outrider_request_set(request, parameter_name(name).c_str(), value.c_str()), OUTRIDER_OK);
  outrider_completion* completion = nullptr;
  EXPECT_EQ(outrider_generate(engine, request, nullptr, nullptr, &completion), OUTRIDER_OK);
  outrider_request_free(request);
  const int32_t* tokens = outrider_completion_tokens(completion, &count);
  Tokens copy(tokens, tokens + count);
  outrider_completion_free(completion);
  return copy;
}

class ApisTest : public ::testing::TestWithParam<std::string> {};

TEST_P(ApisTest, GiveTheTokensOfTheProgram) {
  const std::string method = GetParam() == "auto" ? "auto" : GetParam() + ",policy=fixed";
  const std::vector<NamedOption> options = {
      {"model", "builtin"}, {"speculative", method}, {"cache_dir", "none"}};
  const auto opened = open_with_options(options);
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  outrider_options* c_options = outrider_options_new();
  for (const NamedOption& option : options)
    outrider_options_add(c_options, option.name.c_str(), option.value.c_str());
  outrider_engine* engine = nullptr;
  ASSERT_EQ(outrider_engine_open(c_options, &engine), OUTRIDER_OK) << outrider_last_error();
  outrider_options_free(c_options);
  const Parameters greedy = {{"max-tokens", "32"}};
  const Parameters sampled = {{"max-tokens", "32"}, {"temperature", "0.8"}, {"top-p", "0.95"}, {"seed", "3"}};
  for (const Parameters& parameters : {greedy, sampled}) {
    const Tokens expected = tokens_of_program(method, parameters);
    EXPECT_EQ(tokens_of_cpp(*opened, parameters), expected);
    EXPECT_EQ(tokens_of_c(engine, parameters), expected);
  }
  outrider_engine_close(engine);
}

// The options of all APIs name the device.
TEST(ApisOnADevice, EnginesSayWhereTheyCompute) {
  for (const std::string device : {"cpu", "emulated"}) {
    const std::vector<NamedOption> options = {
        {"model", "builtin"}, {"speculative", "none"}, {"cache_dir", "none"}, {"device", device}};
    outrider_options* c_options = outrider_options_new();
    for (const NamedOption& option : options)
      outrider_options_add(c_options, option.name.c_str(), option.value.c_str());
    outrider_engine* engine = nullptr;
    const outrider_status status = outrider_engine_open(c_options, &engine);
    outrider_options_free(c_options);
    if (status != OUTRIDER_OK)
      GTEST_SKIP() << outrider_last_error();  // no table has the arithmetic of devices
    EXPECT_EQ(outrider_engine_device(engine), device);
    outrider_engine_close(engine);
  }
}

std::vector<std::string> tried_methods() {
  std::vector<std::string> methods = built_in_methods();
  methods.insert(methods.end(), {"auto", "combine=[ngram,draft_target]"});
  return methods;
}

INSTANTIATE_TEST_SUITE_P(Methods, ApisTest, ::testing::ValuesIn(tried_methods()));

}  // namespace
}  // namespace outrider
