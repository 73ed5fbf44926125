// SPDX-License-Identifier: Apache-2.0
#include "training/job/job_rates.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "base/counter_rng.h"
#include "open/drafters/drafter_places.h"
#include "outrider/engine.h"
#include "training/core/device.h"
#include "training/core/optimizer.h"
#include "training/head_data/head_batches.h"
#include "training/head_data/open_writer.h"
#include "training/head_data/state_source.h"

namespace outrider::training {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kTexts = 64;  // that are written
constexpr int64_t kPromptTokens = 48;
constexpr int64_t kShortText = 5, kLongText = 25;  // tokens
constexpr double kQuick = 5.0;                     // seconds; if short texts take longer, they have to do
constexpr int64_t kSteps = 3;                      // of training, of one kind, at most
constexpr int64_t kServedPrompts = 4;

int64_t prompt_tokens(const ModelConfig& target) { return std::min(kPromptTokens, target.max_context / 2); }

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

std::vector<TokenId> random_tokens(int64_t count, int64_t vocab, uint64_t index) {
  std::vector<TokenId> tokens;
  for (int64_t i = 0; i < count; ++i)
    tokens.push_back(static_cast<TokenId>(random_bits({.seed = 1, .position = i, .index = index}) %
                                          static_cast<uint64_t>(vocab)));
  return tokens;
}

struct Written {
  double seconds = 0.0;
  int64_t tokens = 0;
};

// Writes texts of at most so many tokens, with prompts that no other call has: they are not in a cache.
Result<Written> write_texts(TextWriter& writer, const ModelConfig& target, int64_t max_tokens) {
  std::vector<std::vector<TokenId>> prompts;
  std::vector<WritingTask> tasks;
  for (int64_t i = 0; i < kTexts; ++i)
    prompts.push_back(random_tokens(prompt_tokens(target), target.vocab_size,
                                    static_cast<uint64_t>(max_tokens * kTexts + i)));
  for (const std::vector<TokenId>& tokens : prompts)
    tasks.push_back({.prompt = tokens, .max_tokens = max_tokens, .temperature = 1.0, .seed = 1});
  Written written;
  const auto sink = [&](size_t, const std::vector<TokenId>& text) { written.tokens += std::ssize(text); };
  GenerationProgress shown("measuring how fast the model writes", kTexts, 0);
  const auto start = Clock::now();
  OUTRIDER_RETURN_IF_ERROR(writer.write(tasks, sink, shown));
  written.seconds = seconds_since(start);
  return written;
}

// A text of one token costs its prompt; longer ones show what a token costs.
Status measure_writing(const HeadOptions& options, const FrozenTarget& target, JobRates& rates) {
  OUTRIDER_TRY(const std::unique_ptr<TextWriter> writer, open_writer(options, target));
  OUTRIDER_TRY(const Written first, write_texts(*writer, target.config(), 1));
  const int64_t longest = first.seconds > kQuick ? kShortText : kLongText;
  OUTRIDER_TRY(const Written all, write_texts(*writer, target.config(), longest));
  rates.reading =
      static_cast<double>(kTexts * prompt_tokens(target.config())) / std::max(1e-6, first.seconds);
  rates.writing = static_cast<double>(std::max<int64_t>(1, all.tokens - kTexts)) /
                  std::max(0.1 * all.seconds, all.seconds - first.seconds);
  return {};
}

// Windows of random tokens that all count: a full batch.
Result<HeadData> random_data(const HeadOptions& options, int64_t vocab) {
  DocumentSource source;
  const int64_t windows = std::max<int64_t>(24, 3 * options.batch_tokens / options.context);
  for (int64_t i = 0; i < windows; ++i) {
    Document document{.tokens = random_tokens(options.context, vocab, static_cast<uint64_t>(i)),
                      .counted = {}};
    document.counted.assign(document.tokens.size(), 1);
    source.documents.push_back(std::move(document));
  }
  std::vector<DocumentSource> sources;
  sources.push_back(std::move(source));
  return HeadData::create(std::move(sources), {.context = options.context,
                                               .batch_tokens = options.batch_tokens,
                                               .held_out_one_in = 4,
                                               .seed = options.seed});
}

// One head and its optimizer.
struct Trial {
  const DraftHead& head;
  Optimizer optimizer;
  const HeadData& data;
  StateSource& states;
  at::Device device;

  // Seconds of a step at this share of the training.
  Result<double> step(double progress, int64_t index) {
    const auto start = Clock::now();
    OUTRIDER_TRY(HeadBatch batch, make_head_batch(data.batch(index), states, device));
    batch.seed = static_cast<uint64_t>(index);
    batch.progress = progress;
    head.loss(batch).loss.backward();
    optimizer.step(1e-4);
    return seconds_since(start);
  }
};

// The least of some steps, if they are quick: other programs may hold one up.
Result<double> least_step_s(Trial& trial, double progress, int64_t first) {
  OUTRIDER_TRY(double least, trial.step(progress, first));
  double sum = least;
  for (int64_t i = 1; i < kSteps && sum < kQuick; ++i) {
    OUTRIDER_TRY(const double seconds, trial.step(progress, first + i));
    least = std::min(least, seconds);
    sum += seconds;
  }
  return least;
}

int64_t parameters_of(const DraftHead& head) {
  int64_t count = 0;
  for (const auto& [name, tensor] : head.parameters()) count += tensor.numel();
  return count;
}

Status measure_steps(const HeadRecipe& recipe, const HeadOptions& options, FrozenTarget& target,
                     JobRates& rates) {
  OUTRIDER_TRY(const at::Device device, open_device("--device", options.device));
  OUTRIDER_TRY(const HeadData data, random_data(options, target.config().vocab_size));
  const std::vector<int64_t> counts = data.token_counts(target.config().vocab_size);
  OUTRIDER_TRY(const std::unique_ptr<DraftHead> head,
               recipe.make({.target = target, .options = options, .token_counts = counts, .device = device}));
  FeatureNeeds needs = head->needs();
  needs.type = options.products;
  OUTRIDER_RETURN_IF_ERROR(target.want(needs));
  OUTRIDER_TRY(StateSource states, StateSource::open(target, {}));
  Trial trial{
      .head = *head,
      .optimizer = Optimizer(head->parameters(), {.is_muon = options.is_muon, .products = options.products}),
      .data = data,
      .states = states,
      .device = device};
  OUTRIDER_TRY([[maybe_unused]] const double unprepared, trial.step(0.0, 0));
  OUTRIDER_TRY(rates.first_step_s, least_step_s(trial, 0.0, 1));
  OUTRIDER_TRY(rates.last_step_s, least_step_s(trial, 1.0, 1 + kSteps));
  rates.parameters = parameters_of(*head);
  rates.head_share = static_cast<double>(rates.parameters) /
                     static_cast<double>(std::max<int64_t>(1, weight_bytes(target.file().path)));
  return {};
}

// As AcceptanceProbe decodes, but plainly.
Status measure_serving(const HeadOptions& options, const ModelConfig& target, JobRates& rates) {
  EngineOptions engine_options;
  engine_options.model = options.target;
  engine_options.threads = options.threads;
  auto start = Clock::now();
  OUTRIDER_TRY(const std::unique_ptr<Engine> engine, Engine::open(engine_options));
  rates.open_s = seconds_since(start);
  const int64_t count = std::min<int64_t>(16, options.measured_tokens);
  start = Clock::now();
  for (int64_t i = 0; i < kServedPrompts; ++i) {
    Request request{.prompt = random_tokens(8, target.vocab_size, static_cast<uint64_t>(i)),
                    .max_tokens = count,
                    .ignore_eos = true};
    OUTRIDER_TRY([[maybe_unused]] const RequestId id, engine->submit(std::move(request)));
  }
  while (engine->step()) {
  }
  rates.token_s = seconds_since(start) / static_cast<double>(kServedPrompts * count);
  return {};
}

}  // namespace

Result<JobRates> measure_rates(const HeadRecipe& recipe, const HeadOptions& options, FrozenTarget& target) {
  JobRates rates;
  at::set_num_threads(options.threads);
  OUTRIDER_RETURN_IF_ERROR(measure_writing(options, target, rates));
  OUTRIDER_RETURN_IF_ERROR(measure_steps(recipe, options, target, rates));
  OUTRIDER_RETURN_IF_ERROR(measure_serving(options, target.config(), rates));
  return rates;
}

int64_t training_memory(int64_t target_bytes, int64_t parameters, const ModelConfig& target,
                        const HeadOptions& options) {
  constexpr int64_t kBytesOfParameter = 4 * 5;  // itself, its gradient, two moments, its product's type
  const int64_t tables = 2 * target.vocab_size * target.hidden_size * 6;  // f32, and the type of products
  const int64_t logits = std::min<int64_t>(target.vocab_size, 32000) * options.batch_tokens * 6;
  return 2 * target_bytes + parameters * kBytesOfParameter + tables + logits;
}

}  // namespace outrider::training
