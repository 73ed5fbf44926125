// SPDX-License-Identifier: Apache-2.0
// kill -9 at random moments leaves no file that a later run takes for whole, and no run that cannot be
// repeated.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "tests/chaos/chaos_runs.h"
#include "tests/program/program_fixture.h"
#include "tests/support/fake_hub.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

class KilledPrograms : public ProgramTest {
 protected:
  // Runs the command once for its length, and then `chaos_runs` times with a kill within that time. `check`
  // runs after every kill.
  void kill_often(const std::string& arguments, const std::string& before, const auto& check) {
    const auto start = Clock::now();
    run(arguments, before);
    const double length = seconds_since(start);
    const int runs = chaos_runs(100);
    int killed = 0;
    for (int i = 0; i < runs; ++i) {
      const double moment = std::uniform_real_distribution<double>(0.001, 1.1 * length)(random_);
      // `timeout` ends with 137 where it killed the program.
      const Outcome outcome = run(arguments, before + " timeout -s KILL " + std::to_string(moment));
      if (outcome.exit_code == 137 || outcome.exit_code == -1) ++killed;
      check();
      if (HasFailure()) FAIL() << "after kill " << i << " at " << moment << " s";
    }
    std::printf("%d of %d runs were killed, a run takes %.2f s\n", killed, runs, length);
    EXPECT_GT(killed, runs / 3);
  }

  int64_t files_of(const fs::path& folder) const {
    if (!fs::exists(folder)) return 0;
    return std::distance(fs::recursive_directory_iterator(folder), fs::recursive_directory_iterator());
  }

  std::mt19937_64 random_{48};
};

TEST_F(KilledPrograms, KeepTheirCaches) {
  const std::string cache = (folder_ / "cache").string(), packed = (folder_ / "packed").string();
  const std::string command = "generate " + kSmall +
                              " --json -p 'Once upon a time' --max-tokens 16 --cache-dir " + cache +
                              " --packed-cache " + packed;
  const std::string text = run_json("generate " + kSmall +
                                    " --json -p 'Once upon a time' --max-tokens 16 --cache-dir none")["text"];
  int kills = 0;
  kill_often(command, "", [&] {
    if (++kills % 10 != 0) return;
    EXPECT_EQ(run_json(command)["text"], text);
    // Half of the kills then find caches, half have to make them.
    if (kills % 20 == 0) fs::remove_all(packed), fs::remove_all(cache);
  });
  EXPECT_EQ(run_json(command)["text"], text);
  // The files of killed writers are replaced, so their number stays.
  EXPECT_LE(files_of(packed), 2);
  EXPECT_LE(files_of(cache), 4);
}

TEST_F(KilledPrograms, QuantizeLeavesAWholeFileOrNone) {
  const std::string out = (folder_ / "out.gguf").string();
  const std::string command = "quantize " + kModel + ".gguf " + out + " --type q8_0 --force";
  const Outcome first = run(command);
  ASSERT_EQ(first.exit_code, 0) << first.errors;
  const std::string whole = contents(out);
  kill_often(command, "", [&] {
    if (fs::exists(out)) {
      EXPECT_EQ(contents(out), whole);
    }
    if (random_() % 2 == 0) fs::remove(out);
  });
  EXPECT_EQ(run(command).exit_code, 0);
  EXPECT_EQ(contents(out), whole);
}

TEST_F(KilledPrograms, PullGoesOn) {
  const std::string repository = "org/tiny-GGUF", file = "tiny-F32.gguf";
  FakeHub hub;
  const std::string model = contents(kModel + ".gguf");
  hub.add_repository(repository, {{file, model}});
  const auto slow_down = [&] { hub.fail(FakeHub::target_of(repository, file), {{.pause_ms = 20}}); };
  slow_down();
  const std::string before = "env -u HF_TOKEN -u HF_HOME no_proxy='*' HOME=" + folder_.string() +
                             " XDG_CACHE_HOME=" + folder_.string() + "/cache HF_ENDPOINT=" + hub.url();
  const fs::path pulled = folder_ / "cache/outrider/models" / repository / file;
  kill_often("pull " + repository, before, [&] {
    slow_down();
    if (!fs::exists(pulled)) return;
    EXPECT_EQ(contents(pulled), model);
    fs::remove(pulled);
  });
  EXPECT_EQ(run("pull " + repository, before).exit_code, 0);
  EXPECT_EQ(contents(pulled), model);
}

}  // namespace
}  // namespace outrider
