// SPDX-License-Identifier: Apache-2.0
// Requests in the background: they run while no other request does, give their places and pages to others,
// and write the text that they would write by themselves.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "config/methods.h"
#include "outrider/engine.h"

namespace outrider {
namespace {

EngineOptions background_options(const std::string& drafter) {
  const std::string models = std::string(OUTRIDER_SOURCE_DIR) + "/models/";
  EngineOptions options;
  options.model = models + "outrider-small";
  options.threads = 2;
  options.context = 256;
  options.max_batch = 3;
  options.speculation.decoding_type = *find_method(drafter);
  options.speculation.speculative_model = models + "outrider-draft";
  options.speculation.is_auto = false;
  return options;
}

class BackgroundRun {
 public:
  explicit BackgroundRun(const EngineOptions& options) {
    auto opened = Engine::open(options);
    EXPECT_TRUE(opened.ok()) << opened.error().message;
    engine_ = std::move(opened).value();
  }

  RequestId submit(int number, bool in_background) {
    Request request;
    request.prompt = engine_->tokenize("One day, Tim number " + std::to_string(number) + " went to the park");
    request.max_tokens = 24 + number;
    request.ignore_eos = true;
    request.sampling.temperature = number % 2 == 0 ? 0.0 : 1.0;
    request.sampling.seed = 5;
    request.is_background = in_background;
    const auto id =
        engine_->submit(std::move(request), [this, in_background](RequestId from, const Progress& progress) {
          moved_[from] += in_background ? 1 : 0;
          if (progress.completion != nullptr) texts_[from] = progress.completion->text;
        });
    EXPECT_TRUE(id.ok()) << id.error().message;
    return *id;
  }
  void step(int count) {
    for (int i = 0; i < count; ++i) engine_->step();
  }
  void drain() {
    while (engine_->step()) {
    }
  }
  bool is_done(RequestId id) const { return texts_.contains(id); }
  // How often requests in the background have got output.
  int moved() const {
    int sum = 0;
    for (const auto& [id, count] : moved_) sum += count;
    return sum;
  }
  const std::string& text(RequestId id) { return texts_[id]; }
  Engine& engine() { return *engine_; }

 private:
  std::unique_ptr<Engine> engine_;
  std::map<RequestId, int> moved_;
  std::map<RequestId, std::string> texts_;
};

std::vector<std::string> texts_alone(const EngineOptions& options, int count) {
  BackgroundRun run(options);
  std::vector<std::string> texts;
  for (int i = 0; i < count; ++i) {
    const RequestId id = run.submit(i, false);
    run.drain();
    texts.push_back(run.text(id));
  }
  return texts;
}

class Background : public testing::TestWithParam<const char*> {};

TEST_P(Background, WaitsForOthersAndWritesTheSameText) {
  const EngineOptions options = background_options(GetParam());
  const std::vector<std::string> alone = texts_alone(options, 8);
  BackgroundRun run(options);
  std::vector<RequestId> ids;
  for (int i = 0; i < 5; ++i) ids.push_back(run.submit(i, true));
  run.step(6);
  EXPECT_GT(run.moved(), 0);
  for (int i = 5; i < 8; ++i) {
    ids.push_back(run.submit(i, false));
    const int before = run.moved();
    while (!run.is_done(ids.back())) run.step(1);
    EXPECT_EQ(run.moved(), before) << "the background ran beside another request";
    run.step(3);
  }
  run.drain();
  for (size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(run.text(ids[i]), alone[i]) << i;
  EXPECT_EQ(run.engine().free_pages(), run.engine().status().pages);
}

TEST_P(Background, GivesItsPagesToOthers) {
  EngineOptions options = background_options(GetParam());
  options.context = 96;
  options.kv_pages = 8;  // one sequence of full length, and hardly two of these
  const std::vector<std::string> alone = texts_alone(options, 6);
  BackgroundRun run(options);
  std::vector<RequestId> ids;
  for (int i = 0; i < 3; ++i) ids.push_back(run.submit(i, true));
  run.step(12);
  for (int i = 3; i < 6; ++i) ids.push_back(run.submit(i, false));
  run.step(4);
  run.drain();
  for (size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(run.text(ids[i]), alone[i]) << i;
}

TEST_P(Background, SomeRunBesideOthersInPlacesThatAreFree) {
  EngineOptions options = background_options(GetParam());
  options.background_beside = 1;
  const std::vector<std::string> alone = texts_alone(options, 6);
  BackgroundRun run(options);
  std::vector<RequestId> ids;
  for (int i = 0; i < 3; ++i) ids.push_back(run.submit(i, true));
  run.step(2);
  ids.push_back(run.submit(3, false));
  run.step(1);
  EXPECT_EQ(run.engine().status().running, 2);
  EXPECT_EQ(run.engine().status().parked, 2);
  for (int i = 4; i < 6; ++i) ids.push_back(run.submit(i, false));
  run.step(1);
  EXPECT_EQ(run.engine().status().running, 3);  // all three places are taken by others
  EXPECT_EQ(run.engine().status().parked, 3);
  run.drain();
  for (size_t i = 0; i < ids.size(); ++i) EXPECT_EQ(run.text(ids[i]), alone[i]) << i;
}

INSTANTIATE_TEST_SUITE_P(Drafters, Background, testing::Values("none", "ngram", "draft_target", "early_exit"),
                         [](const auto& info) { return std::string(info.param); });

TEST(BackgroundQueue, DoesNotCountToTheQueue) {
  EngineOptions options = background_options("none");
  options.max_batch = 1;
  options.max_waiting = 1;
  BackgroundRun run(options);
  for (int i = 0; i < 4; ++i) run.submit(i, true);
  run.step(1);
  run.submit(4, false);
  run.submit(5, false);
  Request refused;
  refused.prompt = {1, 2};
  EXPECT_FALSE(run.engine().submit(std::move(refused)).ok());
  run.submit(6, true);
  run.drain();
  EXPECT_EQ(run.engine().status().waiting, 0);
}

}  // namespace
}  // namespace outrider
