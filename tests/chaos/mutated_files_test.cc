// SPDX-License-Identifier: Apache-2.0
// Whole files with random damage, and files that are no files, through `inspect` and `generate`: each run
// ends within its time and memory, with an answer or with a message.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "tests/chaos/chaos_runs.h"
#include "tests/program/program_fixture.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

const fs::path kData = OUTRIDER_SOURCE_DIR "/tests/data";
const std::string kFew = " -p 'The dog' --max-tokens 4 --threads 1 --cache-dir none";
constexpr int kSeconds = 20;
// Address space in KiB: the program with the small models takes a fifth of it.
const std::string kBounds = "ulimit -v 3000000; timeout -s KILL " + std::to_string(kSeconds);

// Damages of bytes, as storage, transfers and attackers make them.
class Damage {
 public:
  explicit Damage(uint64_t seed) : random_(seed) {}

  std::string operator()(std::string bytes) {
    for (uint64_t left = 1 + below(4); left > 0 && !bytes.empty(); --left) {
      const size_t place = place_in(bytes);
      const size_t length = std::min<size_t>(1 + below(below(2) == 0 ? 16 : 4096), bytes.size() - place);
      switch (below(8)) {
        case 0:
          bytes[place] = static_cast<char>(bytes[place] ^ (1 << below(8)));
          break;
        case 1:
          put_number(bytes, place);
          break;
        case 2:
          bytes.erase(place, length);
          break;
        case 3:
          bytes.insert(place, bytes.substr(place, length));
          break;
        case 4:
          bytes.resize(place);
          break;
        case 5:
          bytes.replace(place, length, length, static_cast<char>(below(256)));
          break;
        case 6:
          bytes.insert(place, word());
          break;
        default:
          bytes.replace(place, length, bytes.substr(place_in(bytes), length));
          break;
      }
    }
    return bytes;
  }

  uint64_t below(uint64_t end) { return random_() % end; }

 private:
  // Headers are small and decide most, so half of the damage is there.
  size_t place_in(const std::string& bytes) {
    return below(below(2) == 0 ? std::min<size_t>(bytes.size(), 2048) : bytes.size());
  }

  // A limit of a type, of 1 to 8 bytes, little endian.
  void put_number(std::string& bytes, size_t place) {
    const uint64_t power = uint64_t{1} << below(64);
    const std::array<uint64_t, 6> values = {0, 1, power, power - 1, ~uint64_t{0}, ~power};
    uint64_t value = values[below(values.size())];
    for (uint64_t left = uint64_t{1} << below(4); left > 0 && place < bytes.size(); --left, ++place) {
      bytes[place] = static_cast<char>(value & 255);
      value >>= 8;
    }
  }

  // A piece of the texts of these formats.
  std::string word() {
    static const std::vector<std::string> words = {"-1",
                                                   "1e999",
                                                   "9223372036854775807",
                                                   "0.5",
                                                   "null",
                                                   "true",
                                                   "{}",
                                                   "[]",
                                                   "\"\"",
                                                   "{",
                                                   "}",
                                                   "[",
                                                   "]",
                                                   ",",
                                                   ":",
                                                   "\"",
                                                   "\\u0000",
                                                   "\\ud800",
                                                   "\n",
                                                   "\t- ",
                                                   "&a [*a]",
                                                   "{{",
                                                   "}}",
                                                   "{% for a in b %}",
                                                   "{% endfor %}",
                                                   "{% if x %}",
                                                   " * 99999999",
                                                   "../../x",
                                                   "\xff\xfe",
                                                   std::string(3000, '['),
                                                   "\x80\x02",
                                                   "cos\nsystem\n"};
    return words[below(words.size())];
  }

  std::mt19937_64 random_;
};

class MutatedFiles : public ProgramTest {
 protected:
  // A copy in the test's folder, whose links are followed.
  fs::path copy_of(const fs::path& source) const {
    const fs::path copy = folder_ / source.filename();
    fs::copy(source, copy, fs::copy_options::recursive);
    return copy;
  }

  // Damages `file` and runs `commands` in turn, often.
  void damage_often(const fs::path& file, const std::vector<std::string>& commands) {
    const std::string whole = contents(file);
    ASSERT_FALSE(whole.empty()) << file;
    for (const std::string& command : commands) {
      ASSERT_EQ(run(command, kBounds).exit_code, 0) << command << ": " << run(command).errors;
    }
    int refused = 0;
    const int runs = chaos_runs(40);
    for (int i = 0; i < runs; ++i) {
      Damage damage(static_cast<uint64_t>(i) + 48'000);
      write_over(file, damage(whole));
      const std::string& command = commands[static_cast<size_t>(i) % commands.size()];
      refused += expect_orderly_end(command) ? 1 : 0;
      if (HasFailure()) FAIL() << "damage " << i << " of " << file << ": " << command;
    }
    write_over(file, whole);
    std::printf("%s: %d of %d damaged files were refused\n", file.filename().c_str(), refused, runs);
    EXPECT_GT(refused, 0);
  }

  // Whether the program refused it.
  bool expect_orderly_end(const std::string& command) const {
    const Outcome outcome = run(command, kBounds);
    EXPECT_TRUE(outcome.exit_code >= 0 && outcome.exit_code <= 2)
        << command << ": exit code " << outcome.exit_code << ": " << outcome.errors.substr(0, 2000);
    if (outcome.exit_code == 0) return false;
    EXPECT_NE(outcome.errors.find("outrider: "), std::string::npos) << outcome.errors.substr(0, 2000);
    return true;
  }

  void write_over(const fs::path& file, const std::string& bytes) const {
    fs::remove(file);
    write(fs::relative(file, folder_), bytes);
  }

  static std::vector<std::string> commands_of(const fs::path& model) {
    return {"inspect " + model.string(), "generate " + model.string() + kFew};
  }
};

TEST_F(MutatedFiles, Gguf) {
  for (const char* name : {"models/llama.gguf", "models/deepseek_v3.gguf", "models/gpt_oss.gguf",
                           "models/lfm2.gguf", "models/qwen3_5_moe.gguf", "formats/quantized.gguf"}) {
    const fs::path file = copy_of(kData / name);
    std::vector<std::string> commands = commands_of(file);
    if (file.filename() == "quantized.gguf") commands = {"inspect " + file.string()};
    damage_often(file, commands);
  }
}

TEST_F(MutatedFiles, GgufInParts) {
  for (const char* part : {"1", "2", "3"})
    copy_of(kData / ("formats/split-0000" + std::string(part) + "-of-00003.gguf"));
  const std::vector<std::string> commands = commands_of(folder_ / "split-00001-of-00003.gguf");
  damage_often(folder_ / "split-00001-of-00003.gguf", commands);
  damage_often(folder_ / "split-00002-of-00003.gguf", commands);
}

TEST_F(MutatedFiles, FoldersOfHuggingFace) {
  const fs::path model = copy_of(kData / "formats/llama");
  for (const char* name : {"config.json", "generation_config.json", "model-00002-of-00003.safetensors",
                           "model.safetensors.index.json", "tokenizer.json", "tokenizer_config.json"}) {
    damage_often(model / name, commands_of(model));
  }
}

TEST_F(MutatedFiles, ConfigurationsOfFamilies) {
  for (const char* name : {"gemma3", "deepseek_v2", "qwen3_next", "phi3", "falcon", "granitemoe"}) {
    const fs::path model = copy_of(kData / "models" / name);
    damage_often(model / "config.json", commands_of(model));
  }
}

TEST_F(MutatedFiles, Pickles) {
  for (const char* name : {"torch/qwen2.bin", "torch/legacy.bin"}) {
    const fs::path model = copy_of(kData / "formats/qwen2");
    fs::remove(model / "model.safetensors");
    fs::copy_file(kData / "torch/qwen2.bin", model / "pytorch_model.bin");
    if (std::string(name) == "torch/qwen2.bin") {
      damage_often(model / "pytorch_model.bin", commands_of(model));
    } else {
      // The old format, with the weights of another model.
      write_over(model / "pytorch_model.bin", contents(kData / name));
      const std::string whole = contents(kData / name);
      for (int i = 0; i < chaos_runs(40); ++i) {
        Damage damage(static_cast<uint64_t>(i));
        write_over(model / "pytorch_model.bin", damage(whole));
        EXPECT_TRUE(expect_orderly_end("generate " + model.string() + kFew)) << i;
      }
    }
    fs::remove_all(model);
  }
}

TEST_F(MutatedFiles, Heads) {
  for (const char* name : {"outrider-mtp", "outrider-moa", "outrider-eagle3"}) {
    const fs::path head = copy_of(OUTRIDER_SOURCE_DIR "/models" / fs::path(name));
    const std::string command = "generate " + kSmall + kFew + " --speculative-model " + head.string();
    damage_often(head / "config.json", {command, "inspect " + head.string()});
    damage_often(head / "model.safetensors", {command});
  }
}

TEST_F(MutatedFiles, TextsOfTheUser) {
  const fs::path options = copy_of(kData / "peer_configs/trtllm_ngram.yaml");
  damage_often(options, {"generate " + kSmall + kFew + " --speculative " + options.string()});
  const fs::path config =
      write("config.yaml", "max_tokens: 4\ntemperature: 0.5\nspeculative:\n  method: ngram\n");
  damage_often(config, {"generate " + kSmall + kFew + " --config " + config.string()});
  for (const char* name : {"llama31_tools.json", "gemma.json", "qwen3_thinking.json"}) {
    const fs::path model = copy_of(kModel);
    const fs::path chat_template = model / "chat_template.jinja";
    write_over(chat_template, Json::parse(contents(kData / "chat" / name))["template"].get<std::string>());
    damage_often(chat_template, {"generate " + model.string() + kFew + " --chat"});
    fs::remove_all(model);
  }
}

// Where a file is expected there is a pipe, a device, a folder, a link in a ring, a terabyte of nothing.
TEST_F(MutatedFiles, NoFiles) {
  const fs::path ring = folder_ / "ring", pipe = folder_ / "pipe", holes = folder_ / "holes.gguf";
  fs::create_symlink("ring", ring);
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  fs::copy_file(kData / "models/llama.gguf", holes);
  fs::resize_file(holes, uint64_t{1} << 40);
  const fs::path empty_holes = folder_ / "empty.gguf";
  write("empty.gguf", "");
  fs::resize_file(empty_holes, uint64_t{1} << 40);
  const std::vector<fs::path> odd = {ring,        pipe,        empty_holes,   folder_,
                                     "/dev/null", "/dev/zero", "/dev/random", "/proc/self/mem"};
  const std::string small = "generate " + kSmall + kFew;
  for (const fs::path& path : odd) {
    for (const std::string& command : {"inspect " + path.string(), "generate " + path.string() + kFew,
                                       small + " --speculative-model " + path.string()}) {
      EXPECT_TRUE(expect_orderly_end(command)) << command;
    }
    if (path == pipe) continue;  // a text may come from a pipe, and then its writer is waited for
    for (const char* option : {" --config ", " --speculative ", " --prompt-file "}) {
      expect_orderly_end(small + option + path.string());
    }
  }
  // A file of the model alone is odd; the others are whole.
  for (const char* name : {"config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json",
                           "generation_config.json", "chat_template.jinja"}) {
    const fs::path model = copy_of(kModel);
    for (const fs::path& path : odd) {
      fs::remove(model / name);
      fs::create_symlink(path, model / name);
      for (const std::string& command : commands_of(model)) expect_orderly_end(command);
      if (HasFailure()) FAIL() << name << " is " << path;
    }
    fs::remove_all(model);
  }
  // The header is whole, and a terabyte of holes follows.
  for (const std::string& command : commands_of(holes)) expect_orderly_end(command);
}

}  // namespace
}  // namespace outrider
