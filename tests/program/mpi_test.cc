// SPDX-License-Identifier: Apache-2.0
// The program with ranks that mpirun has started.
#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "tests/program/program_fixture.h"

namespace outrider {
namespace {

constexpr const char* kRun = "mpirun --oversubscribe --allow-run-as-root";
const std::string kPrompt = " -p 'Once upon a time' --ctx 1024 --threads 1";

class MpiTest : public ProgramTest {
 protected:
  void SetUp() override {
    if (std::system("mpirun --version >/dev/null 2>&1") != 0)
      GTEST_SKIP() << "there is no mpirun (apt-get install openmpi-bin)";
    const auto module = std::filesystem::path(OUTRIDER_PROGRAM).parent_path() / "liboutrider_mpi.so";
    if (!std::filesystem::exists(module))
      GTEST_SKIP() << "the program was built without MPI (apt-get install libopenmpi-dev)";
  }

  using Clock = std::chrono::steady_clock;

  // Runs two ranks, of which rank 1 is killed when the text has begun, and leaves the time of that in
  // killed_.
  Outcome run_and_kill(const std::string& words, const std::string& options = "") {
    const std::string number = (folder_ / "process").string();
    std::filesystem::remove(number);
    std::filesystem::remove(folder_ / "stdout");
    std::thread killer([&] {
      const Clock::time_point start = Clock::now();
      while (contents(folder_ / "stdout").empty() && Clock::now() - start < std::chrono::seconds(20))
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      killed_ = Clock::now();
      if (pid_t process = 0; std::ifstream(number) >> process) kill(process, SIGKILL);
    });
    const Outcome outcome = run(words, "timeout 60 env " + ranks(1) + options + " " OUTRIDER_PROGRAM + words +
                                           " : -n 1 sh -c 'echo $$ > " + number + "; exec \"$@\"' rank");
    killer.join();
    return outcome;
  }

  Clock::time_point killed_;

  // Open MPI keeps memory until a process ends, which is no leak of ours.
  static std::string ranks(int count) {
    return "ASAN_OPTIONS=detect_leaks=0 " + std::string(kRun) + " -n " + std::to_string(count);
  }
};

TEST_F(MpiTest, TheTextIsThatOfOneProcess) {
  const std::string words = "generate builtin --max-tokens 40" + kPrompt;
  const Outcome alone = run(words);
  ASSERT_EQ(alone.exit_code, 0) << alone.errors;
  for (const auto& [count, division] :
       {std::pair{2, " --tensor-parallel 2"}, std::pair{4, " --tensor-parallel 2 --pipeline-parallel 2"}}) {
    for (const char* drafter : {" --speculative none", " --speculative draft_target"}) {
      const Outcome divided = run(words + division + drafter, ranks(count));
      EXPECT_EQ(divided.exit_code, 0) << divided.errors;
      EXPECT_EQ(divided.output, alone.output) << division << drafter;
    }
  }
}

// Their passes are lists, in which they exchange numbers.
TEST_F(MpiTest, EachRankHasADevice) {
  const std::string words =
      "generate builtin --max-tokens 12 --weights q4 --speculative draft_target" + kPrompt;
  const Outcome alone = run(words + " --device emulated");
  ASSERT_EQ(alone.exit_code, 0) << alone.errors;
  for (const char* division : {" --tensor-parallel 2", " --pipeline-parallel 2"}) {
    const Outcome divided = run(words + " --device emulated" + division, ranks(2));
    EXPECT_EQ(divided.exit_code, 0) << divided.errors;
    EXPECT_EQ(divided.output, alone.output) << division;
    EXPECT_EQ(divided.errors.find("one by one"), std::string::npos) << divided.errors;
  }
}

// Messages between ranks of one machine otherwise lie in memory that they share.
TEST_F(MpiTest, TheTextIsTheSameThroughMpi) {
  const std::string words = "generate builtin --max-tokens 40" + kPrompt;
  const Outcome alone = run(words);
  ASSERT_EQ(alone.exit_code, 0) << alone.errors;
  for (const auto& [count, division] :
       {std::pair{4, " --tensor-parallel 2 --pipeline-parallel 2 --speculative draft_target"},
        std::pair{3, " --tensor-parallel 2 --draft-ranks 1 --speculative draft_target"},
        std::pair{2, " --draft-ranks 1 --draft-ahead on --speculative draft_target"}}) {
    const Outcome divided = run(words + division + " --rank-memory off", ranks(count));
    EXPECT_EQ(divided.exit_code, 0) << divided.errors;
    EXPECT_EQ(divided.output, alone.output) << division;
  }
}

TEST_F(MpiTest, DraftRanksChangeNoText) {
  const std::string words = "generate builtin --max-tokens 40" + kPrompt;
  const Outcome alone = run(words);
  ASSERT_EQ(alone.exit_code, 0) << alone.errors;
  for (const auto& [count, division] :
       {std::pair{2, " --draft-ranks 1"}, std::pair{2, " --draft-ranks 1 --draft-ahead on"},
        std::pair{5, " --tensor-parallel 2 --pipeline-parallel 2 --draft-ranks 1"},
        std::pair{4, " --tensor-parallel 2 --draft-ranks 2"}}) {
    const Outcome divided = run(words + division + " --speculative draft_target", ranks(count));
    EXPECT_EQ(divided.exit_code, 0) << divided.errors;
    EXPECT_EQ(divided.output, alone.output) << division;
  }
}

TEST_F(MpiTest, AJobOfAnotherSizeIsRefused) {
  const Outcome outcome = run("generate builtin --tensor-parallel 3" + kPrompt, ranks(2));
  EXPECT_NE(outcome.exit_code, 0);
  EXPECT_NE(outcome.errors.find("expected a job of 3 ranks"), std::string::npos) << outcome.errors;
}

TEST_F(MpiTest, AKilledRankEndsTheJob) {
  const std::string words = " generate builtin --max-tokens 900 --ignore-eos" + kPrompt;
  // mpirun itself ends the others of a draft rank.
  for (const char* division : {" --tensor-parallel 2 --speculative none",
                               " --tensor-parallel 2 --speculative none --rank-memory off",
                               " --tensor-parallel 2 --speculative none --device emulated",
                               " --draft-ranks 1 --speculative draft_target"}) {
    const Outcome outcome = run_and_kill(words + division);
    EXPECT_NE(outcome.exit_code, 0) << division;
    EXPECT_LT(Clock::now() - killed_, std::chrono::seconds(5)) << division;
  }
}

TEST_F(MpiTest, WithRecoveryAKilledDraftRankCostsSpeedAlone) {
  const std::string words = " generate builtin --max-tokens 900 --ignore-eos" + kPrompt;
  const Outcome alone = run(words + " --speculative none");
  ASSERT_EQ(alone.exit_code, 0) << alone.errors;
  const Outcome outcome =
      run_and_kill(words + " --draft-ranks 1 --speculative draft_target", " --enable-recovery");
  EXPECT_EQ(outcome.output, alone.output) << outcome.errors;
}

// A program by itself, as packages have it.
TEST_F(ProgramTest, WithoutItsModuleTheProgramSaysWhichCommandMakesIt) {
  const auto program = folder_ / "outrider";
  std::filesystem::copy_file(OUTRIDER_PROGRAM, program);
  const std::string line = "OMPI_COMM_WORLD_SIZE=2 " + program.string() + " generate " + kModel +
                           " -p x --tensor-parallel 2 >/dev/null 2>" + (folder_ / "errors").string();
  EXPECT_NE(std::system(line.c_str()), 0);
  const std::string errors = contents(folder_ / "errors");
  EXPECT_NE(errors.find("./dev build makes both"), std::string::npos) << errors;
}

}  // namespace
}  // namespace outrider
