// SPDX-License-Identifier: Apache-2.0
#include "training/lm/lm_trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "training/core/loss_plot.h"
#include "training/core/progress.h"
#include "training/core/test_files.h"

namespace outrider::training {
namespace {

constexpr int kVocab = 64;

// Writes a tokenizer folder, token files with a pattern to learn, and prompts.
class LmTrainerTest : public testing::Test {
 protected:
  void SetUp() override {
    write_tokenizer(kVocab);
    files_.write_bytes("tokenizer/tokenizer_config.json", "{}");
    files_.write_bytes("tokenizer/generation_config.json", R"({"eos_token_id":[0,1]})");
    std::vector<uint16_t> tokens;
    for (int i = 0; i < 4000; ++i)
      tokens.push_back(static_cast<uint16_t>(i % 20 == 19 ? 0 : 2 + (i * 7) % 13));
    for (const char* name : {"data/train/a.u16", "data/heldout/a.u16", "data/prompts/a.u16"}) {
      files_.write_tokens(name, tokens);
    }
  }

  // A byte-level tokenizer without merges.
  void write_tokenizer(int tokens) const {
    std::string vocab;
    for (int i = 0; i < tokens; ++i)
      vocab += (i ? ",\"t" : "\"t") + std::to_string(i) + "\":" + std::to_string(i);
    files_.write_bytes("tokenizer/tokenizer.json",
                       R"({"model":{"type":"BPE","vocab":{)" + vocab +
                           R"(},"merges":[]},"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false},)"
                           R"("decoder":{"type":"ByteLevel"},"added_tokens":[]})");
  }

  LmOptions options(const std::string& out, int64_t steps) const {
    LmOptions options;
    options.data = files_.path("data");
    options.tokenizer = files_.path("tokenizer");
    options.out = files_.path(out);
    options.mixture = {{"a", 1.0}};
    options.shape = {.hidden_size = 64, .layers = 2, .heads = 2, .kv_heads = 1, .ffn_size = 64};
    options.context_lengths = {16, 32};
    options.batch_tokens = 64;
    options.steps = steps;
    options.warmup = 2;
    options.checkpoint_every = 4;
    options.evaluate_every = 100;
    options.threads = 1;
    return options;
  }

  TestFiles files_;
};

TEST_F(LmTrainerTest, AResumedRunEndsInTheSameBits) {
  ASSERT_TRUE(train_lm(options("whole", 8)).ok());

  LmOptions interrupted = options("resumed", 8);
  ASSERT_TRUE(train_lm(interrupted).ok());
  // The state of a run that was killed after its first checkpoint.
  std::filesystem::remove_all(files_.path("resumed/checkpoints/step-000000008"));
  std::filesystem::remove(files_.path("resumed/model.safetensors"));
  interrupted.resume = true;
  const Status resumed = train_lm(interrupted);
  ASSERT_TRUE(resumed.ok()) << resumed.error().message;

  EXPECT_EQ(files_.read("whole/model.safetensors"), files_.read("resumed/model.safetensors"));
  EXPECT_EQ(files_.read("whole/checkpoints/step-000000008/tensors.safetensors"),
            files_.read("resumed/checkpoints/step-000000008/tensors.safetensors"));
}

TEST_F(LmTrainerTest, AnUnfinishedCheckpointIsNotChosen) {
  LmOptions run = options("run", 8);
  ASSERT_TRUE(train_lm(run).ok());
  std::filesystem::rename(files_.path("run/checkpoints/step-000000008"),
                          files_.path("run/checkpoints/step-000000008.tmp"));
  files_.write_bytes("run/checkpoints/step-000000008.tmp/tensors.safetensors", "cut short");
  run.resume = true;
  EXPECT_TRUE(train_lm(run).ok());
}

TEST_F(LmTrainerTest, ADamagedCheckpointIsRefused) {
  LmOptions run = options("run", 4);
  ASSERT_TRUE(train_lm(run).ok());
  const std::string name = "run/checkpoints/step-000000004/tensors.safetensors";
  const std::string whole = files_.read(name);
  run.resume = true;
  run.steps = 6;
  for (const size_t size : {size_t{0}, size_t{7}, size_t{100}, whole.size() - 1}) {
    files_.write_bytes(name, whole.substr(0, size));
    const Status status = train_lm(run);
    ASSERT_FALSE(status.ok()) << size;
    EXPECT_EQ(status.error().kind, ErrorKind::kInput);
  }
}

TEST_F(LmTrainerTest, ResumingWithOtherOptionsIsRefused) {
  LmOptions run = options("run", 4);
  ASSERT_TRUE(train_lm(run).ok());
  EXPECT_FALSE(train_lm(run).ok()) << "an existing run must not be overwritten";
  run.resume = true;
  run.seed = 2;
  const Status status = train_lm(run);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().kind, ErrorKind::kUsage);
}

TEST_F(LmTrainerTest, LearnsThePatternAndTeachesIt) {
  LmOptions teacher = options("teacher", 60);
  teacher.learning_rate = 1e-2;
  ASSERT_TRUE(train_lm(teacher).ok());

  LmOptions student = options("student", 8);
  student.shape.layers = 1;
  student.distill = files_.path("teacher");
  student.continuations = {.prompts = 12, .new_tokens = 10, .max_prompt = 20, .batch = 4};
  const Status status = train_lm(student);
  ASSERT_TRUE(status.ok()) << status.error().message;
  EXPECT_GT(files_.read("student/continuations/a.u16").size(), 12u * 11u * sizeof(uint16_t));
  EXPECT_THAT(files_.read("student/loss.svg"), testing::StartsWith("<svg"));
}

TEST_F(LmTrainerTest, ATeacherOfAnotherVocabularyIsRefused) {
  ASSERT_TRUE(train_lm(options("teacher", 4)).ok());
  write_tokenizer(kVocab + 1);
  LmOptions student = options("student", 4);
  student.distill = files_.path("teacher");
  const Status status = train_lm(student);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().kind, ErrorKind::kUsage);
}

TEST_F(LmTrainerTest, ShapesThatCannotBeQuantizedAreRefused) {
  LmOptions run = options("run", 4);
  run.shape.ffn_size = 100;
  const Status status = train_lm(run);
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().message, testing::HasSubstr("--ffn"));
}

TEST(LossPlot, DrawsEveryPoint) {
  RunHistory history;
  for (int i = 1; i <= 5; ++i) history.training.push_back({i * 20, 5.0 - i * 0.3});
  history.held_out.push_back({100, 3.9});
  const std::string svg = render_loss_plot("target", history);
  EXPECT_THAT(svg, testing::HasSubstr("target"));
  EXPECT_THAT(svg, testing::HasSubstr("<circle"));
  EXPECT_THAT(svg, testing::EndsWith("</svg>\n"));
  EXPECT_THAT(render_loss_plot("empty", {}), testing::EndsWith("</svg>\n"));
}

TEST(Progress, DurationsReadWell) {
  EXPECT_EQ(format_duration(8.2), "8 s");
  EXPECT_EQ(format_duration(750), "12 min 30 s");
  EXPECT_EQ(format_duration(3900), "1 h 05 min");
}

}  // namespace
}  // namespace outrider::training
