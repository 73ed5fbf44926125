// SPDX-License-Identifier: Apache-2.0
// `outrider quantize`.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/program/program_fixture.h"

namespace outrider {
namespace {

TEST_F(ProgramTest, QuantizeWritesTheSameModel) {
  const std::string out = (folder_ / "out.gguf").string();
  const Json report = run_json("quantize " + kModel + " " + out + " --type q8_0 --json");
  EXPECT_EQ(report["type"], "q8_0");
  EXPECT_EQ(report["tensors"][0]["name"], "token_embd.weight");
  EXPECT_EQ(report["tensors"][0]["to"], "q8_0");
  EXPECT_GT(report["tensors"][0]["rmse"], 0.0);
  EXPECT_LT(report["bytes"], report["bytes_before"]);
  const std::string score = " --prompt-ids 1,2,3,4,5,6 --json";
  EXPECT_EQ(run("score " + out + score).output, run("score " + kModel + " --weights q8_0" + score).output);
  const std::string reference = (folder_ / "reference.gguf").string();  // the gguf package wrote its source
  EXPECT_EQ(run("quantize " + kModel + ".gguf " + reference + " --type q8_0").exit_code, 0);
  EXPECT_EQ(run("score " + out + score).output, run("score " + reference + score).output);
  const Json exact = run_json("score " + kModel + score), rounded = run_json("score " + out + score);
  for (int i = 1; i < 6; ++i) {
    EXPECT_NEAR(exact["logprobs"][i].get<double>(), rounded["logprobs"][i].get<double>(), 0.2) << i;
  }

  const std::string again = (folder_ / "again.gguf").string();
  const Outcome smaller = run("quantize " + out + " " + again + " --type q4_k");
  EXPECT_EQ(smaller.exit_code, 0) << smaller.errors;
  EXPECT_NE(smaller.errors.find("lose quality a second time"), std::string::npos) << smaller.errors;
  EXPECT_NE(smaller.errors.find("fit no whole blocks and become q4_0"), std::string::npos) << smaller.errors;
  EXPECT_NE(smaller.output.find("bits per weight"), std::string::npos);
  EXPECT_EQ(run("generate " + again + " -p hello --max-tokens 4").exit_code, 0);
}

TEST_F(ProgramTest, QuantizeRefusesAndLeavesFilesAlone) {
  const std::string out = write("out.gguf", "old");
  const std::string type = " --type q8_0";
  expect_refused("quantize " + kModel + " " + out, 2, "expected --type");
  expect_refused("quantize " + kModel + type, 2, "expected IN and OUT");
  expect_refused("quantize " + kModel + " " + out + " third" + type, 2, "at most IN OUT is taken");
  expect_refused("quantize " + kModel + " out.bin" + type, 2, "ends in .gguf");
  expect_refused("quantize " + kModel + " " + out + " --type q5_k", 2, "q8_0, q6_k, q5_0, q5_1, q4_k");
  expect_refused("quantize " + kModel + " " + out + type, 1, "--force replaces it");
  expect_refused("quantize /nonexistent/model " + out + type + " --force", 1, "/nonexistent/model");
  expect_refused("quantize " + kModel + " /nonexistent/out.gguf" + type, 1, "/nonexistent/out.gguf");
  const std::string in = (folder_ / "in.gguf").string();
  std::filesystem::copy_file(kModel + ".gguf", in);
  expect_refused("quantize " + in + " " + in + type + " --force", 1, "is IN");
  // A limit on the size of files acts like a full disk.
  expect_refused("quantize " + kModel + " " + out + type + " --force", 1, "out.gguf",
                 "trap '' XFSZ; ulimit -f 8;");
  EXPECT_EQ(contents(out), "old");
  EXPECT_FALSE(std::filesystem::exists(out + ".tmp"));
  EXPECT_EQ(run("quantize " + kModel + " " + out + type + " --force").exit_code, 0);
}

}  // namespace
}  // namespace outrider
