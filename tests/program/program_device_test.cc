// SPDX-License-Identifier: Apache-2.0
// Commands with --device, and `verify-lossless --compare-kernels`.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "tests/program/program_fixture.h"

namespace outrider {
namespace {

class ProgramDeviceTest : public ProgramTest {
 protected:
  void SetUp() override {
    const Outcome outcome = run("generate " + kModel + " -p hello --max-tokens 1 --device emulated");
    if (outcome.errors.find("found one without") != std::string::npos)
      GTEST_SKIP() << "no table has the arithmetic of devices";
  }
};

TEST_F(ProgramDeviceTest, EveryCommandRunsOnTheEmulatedDevice) {
  const std::string generate = "generate " + kModel + " -p hello --max-tokens 12 --speculative ngram";
  const Outcome here = run(generate + " --device cpu");
  EXPECT_EQ(here.exit_code, 0);
  EXPECT_EQ(run(generate + " --device emulated").output, here.output);
  EXPECT_EQ(run("score " + kModel + " --prompt-ids 1,2,3 --device emulated").exit_code, 0);
  EXPECT_EQ(
      run_json("bench " + kModel + " --rows 1,4 --context 8 --runs 1 --json --device emulated")["device"],
      "emulated");
  const Json json = run_json("verify-lossless " + kModel +
                             " --limit 2 --max-tokens 8 --json --speculative ngram --device emulated");
  EXPECT_EQ(json["identical"], true);
  EXPECT_EQ(json["device"], "emulated");
}

TEST_F(ProgramDeviceTest, PlainDecodingStaysOnTheDevice) {
  const std::string generate = "generate " + kModel + " -p hello --max-tokens 12 --speculative none";
  const std::string here = run(generate + " --device cpu").output;
  for (const std::string steps : {"0", "1", "3", "8"})
    EXPECT_EQ(run(generate + " --device emulated --device-steps " + steps).output, here) << steps;
  const std::string bench = "bench " + kModel + " --rows 1 --context 8 --runs 1 --json --device emulated";
  EXPECT_EQ(run_json(bench)["device_steps"], 8);
  EXPECT_EQ(run_json(bench + " --device-steps 0")["device_steps"], 0);
}

// A pass is a list for the device, and --profile times its operations one by one.
TEST_F(ProgramDeviceTest, BenchTellsTheOrdersOfAPass) {
  const std::string bench = "bench " + kModel + " --rows 1,3 --context 8 --runs 1 --device emulated";
  const Json figures = run_json(bench + " --json"), profiled = run_json(bench + " --json --profile");
  for (const Json& row : figures["rows"]) {
    EXPECT_EQ(row["device"]["lists"], 1);
    EXPECT_EQ(row["device"]["launches"], 0);
    EXPECT_LT(row["device"]["bytes_to"], 64 << 10);
  }
  for (const Json& row : profiled["rows"]) {
    EXPECT_GT(row["device"]["launches"], 20);
    EXPECT_GT(row["device"]["host_ms"], 0.0);
    EXPECT_LT(row["device"]["host_ms"], row["ms"].back());
  }
  EXPECT_NE(run(bench).output.find("times are of the emulation"), std::string::npos);
}

// The bytes of an operation do not depend on the machine.
TEST_F(ProgramDeviceTest, ProfilesHaveTheBytesOfTheProcessors) {
  const std::string bench = "bench " + kModel + " --rows 1,3 --context 8 --runs 1 --json --profile --device ";
  std::string kernels;
  const auto bytes_of = [&](const std::string& device) {
    std::map<std::string, double> bytes;
    const Json figures = run_json(bench + device);
    kernels = figures["kernels"];
    for (const Json& row : figures["rows"]) {
      for (const Json& operation : row["profile"]) {
        const std::string name = operation["operation"];
        if (name.ends_with("_proj") || name == "attention" || name == "activation")
          bytes[name + " of " + std::to_string(row["rows"].get<int>())] = operation["bytes"];
        EXPECT_EQ(operation["share_of_peak"].is_null(), device == "emulated") << name;
      }
    }
    return bytes;
  };
  const auto of_device = bytes_of("emulated");
  EXPECT_GE(of_device.size(), 8u);
  EXPECT_EQ(of_device, bytes_of("cpu --kernels " + kernels));
}

TEST_F(ProgramDeviceTest, BatchesTellWhatAStepNeedsOfTheDevice) {
  const std::string bench =
      "bench batch " + kModel + " --batch 1,2 --runs 1 --max-tokens 8 --speculative ngram --device ";
  const Json figures = run_json(bench + "emulated --json");
  for (const Json& batch : figures["batches"]) {
    const Json& device = batch["device"];
    EXPECT_GT(device["lists"].get<double>() + device["launches"].get<double>(), 0);
    EXPECT_GT(device["kilobytes_from"], 0.0);
    EXPECT_GT(device["host_ms"], 0.0);
    EXPECT_LT(device["host_ms"], device["step_ms"]);
  }
  EXPECT_NE(run(bench + "emulated").output.find("a step with drafts and the emulated device"),
            std::string::npos);
  EXPECT_FALSE(run_json(bench + "cpu --json")["batches"][0].contains("device"));
}

TEST_F(ProgramDeviceTest, InspectShowsDeviceAndMemory) {
  const Json json = run_json("inspect " + kModel + " --json --device emulated");
  EXPECT_EQ(json["device"]["name"], "emulated");
  EXPECT_GT(json["device"]["gpu_weight_bytes"], 10'000);
  EXPECT_GT(json["device"]["gpu_cache_bytes"], 10'000);
  EXPECT_GT(json["device"]["gpu_scratch_bytes"], 10'000);
  EXPECT_FALSE(json["device"].contains("steps_need_processor"));
}

// The processor computes the first layers, by the names of llama.cpp, too.
TEST_F(ProgramDeviceTest, LayersStayOnTheProcessor) {
  const std::string generate = "generate " + kModel + " -p hello --max-tokens 12 --speculative ngram";
  const std::string here = run(generate + " --device cpu").output;
  for (const std::string layers :
       {"--gpu-layers 1", "-ngl 2", "--n-gpu-layers all", "--gpu-layers auto", "-ngl 0"})
    EXPECT_EQ(run(generate + " --device emulated " + layers).output, here) << layers;
  const std::string bench = "bench " + kModel + " --rows 1 --context 8 --runs 1 --json --device emulated";
  const Json figures = run_json(bench + " --gpu-layers 1");
  EXPECT_EQ(figures["device"], "emulated");
  EXPECT_GE(figures["host_layers"], 1);
  EXPECT_EQ(figures["device_steps"], 0);
  EXPECT_EQ(run_json(bench)["host_layers"], 0);
  const std::string text = run("inspect " + kModel + " --device emulated --gpu-layers 1").output;
  EXPECT_NE(text.find("the last 1 of"), std::string::npos) << text;
  expect_refused(generate + " --gpu-layers some", 2, "expected a number of layers, all or auto");
  expect_refused(generate + " --device emulated --gpu-layers 1 --tensor-parallel 2", 2, "found both");
  const Outcome ignored = run(generate + " --device cpu -ngl 99");
  EXPECT_EQ(ignored.output, here);
  EXPECT_NE(ignored.errors.find("have no effect"), std::string::npos) << ignored.errors;
}

TEST_F(ProgramDeviceTest, ExpertsStayOnTheProcessor) {
  const std::string bench =
      "bench --shape moe-20m@2 --weights q4 --rows 1 --context 8 --runs 1 --json --device emulated";
  EXPECT_EQ(run_json(bench + " --cpu-moe")["host_experts"], 2);
  EXPECT_EQ(run_json(bench + " --n-cpu-moe 1")["host_experts"], 1);
  EXPECT_EQ(run_json(bench + " --cpu-experts all")["host_experts"], 2);
}

TEST_F(ProgramDeviceTest, EachRankHasADevice) {
  const std::string generate = "generate " + kModel + " -p hello --max-tokens 8 --speculative ngram";
  const std::string here = run(generate + " --device cpu").output;
  for (const std::string ranks : {"--tensor-parallel 2", "--pipeline-parallel 2"})
    EXPECT_EQ(run(generate + " --device emulated " + ranks).output, here) << ranks;
}

TEST_F(ProgramDeviceTest, AMissingGpuIsOneLine) {
  const std::string generate = "generate " + kModel + " -p hello --max-tokens 1";
  if (run(generate + " --device cuda").exit_code == 0) GTEST_SKIP() << "this machine has a GPU";
  expect_refused(generate + " --device cuda", 1, "--device cuda: ");
  const Outcome outcome = run(generate);  // silently on the processor
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_EQ(outcome.errors.find("GPU"), std::string::npos) << outcome.errors;
}

TEST_F(ProgramDeviceTest, KernelsAreCompared) {
  const std::string compare =
      "verify-lossless " + kModel + " --compare-kernels --limit 2 --max-tokens 8 --speculative ngram";
  const Json json = run_json(compare + " --json --device emulated");
  EXPECT_EQ(json["identical"], true);
  const auto compared = json["compared"].get<std::vector<std::string>>();
  EXPECT_GE(compared.size(), 2U);
  EXPECT_EQ(compared.back(), "emulated");
  const auto others = json["other_arithmetic"].get<std::vector<std::string>>();
  EXPECT_TRUE(std::ranges::count(others, "reference") == 1);
  EXPECT_TRUE(std::ranges::count(others, compared.front()) == 0);
  EXPECT_GT(json["tokens"], 2 * 2 * 2 * 2 * 4);
  const Outcome text = run(compare + " --device emulated");
  EXPECT_TRUE(text.output.starts_with("identical: ")) << text.output << text.errors;
}

}  // namespace
}  // namespace outrider
