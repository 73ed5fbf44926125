// SPDX-License-Identifier: Apache-2.0
#include "training/head_data/open_writer.h"

#include <utility>

#include "outrider/engine.h"
#include "training/head_data/torch_writer.h"

namespace outrider::training {
namespace {

constexpr int kBatch = 64;              // requests in the engine's batch
constexpr int64_t kTasks = 8 * kBatch;  // few of its places are empty at the end of so many

class EngineWriter : public TextWriter {
 public:
  explicit EngineWriter(std::unique_ptr<Engine> engine) : engine_(std::move(engine)) {}

  int64_t preferred_tasks() const override { return kTasks; }
  Status write(std::span<const WritingTask> tasks, const TextSink& sink, GenerationProgress& shown) override {
    std::vector<std::vector<TokenId>> texts(tasks.size());
    for (size_t i = 0; i < tasks.size(); ++i) {
      const WritingTask& task = tasks[i];
      Request request{.prompt = {task.prompt.begin(), task.prompt.end()}, .max_tokens = task.max_tokens};
      request.sampling.temperature = task.temperature;
      request.sampling.top_p = task.top_p;
      request.sampling.seed = task.seed;
      const auto take = [&, i](RequestId, const outrider::Progress& news) {
        texts[i].insert(texts[i].end(), news.tokens.begin(), news.tokens.end());
        shown.add(std::ssize(news.tokens), news.completion != nullptr ? 1 : 0);
        if (news.completion != nullptr) sink(i, std::move(texts[i]));
      };
      OUTRIDER_TRY([[maybe_unused]] const RequestId id, engine_->submit(std::move(request), take));
    }
    while (engine_->step()) {
    }
    return {};
  }

 private:
  std::unique_ptr<Engine> engine_;
};

}  // namespace

Result<std::unique_ptr<TextWriter>> open_writer(const HeadOptions& options, const FrozenTarget& target) {
  if (target.moved() != nullptr)
    return std::unique_ptr<TextWriter>(
        std::make_unique<TorchWriter>(target, options.writing_memory_mib << 20));
  EngineOptions engine;
  engine.model = options.target;
  engine.threads = options.threads;
  engine.max_batch = kBatch;
  OUTRIDER_TRY(std::unique_ptr<Engine> opened, Engine::open(engine));
  return std::unique_ptr<TextWriter>(std::make_unique<EngineWriter>(std::move(opened)));
}

}  // namespace outrider::training
