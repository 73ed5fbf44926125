// SPDX-License-Identifier: Apache-2.0
#include "training/heads/head_trainer.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <thread>
#include <utility>

#include "base/counter_rng.h"
#include "base/interrupt_guard.h"
#include "base/log.h"
#include "platform/durable_file.h"
#include "training/core/checkpoint.h"
#include "training/core/device.h"
#include "training/core/optimizer.h"
#include "training/core/progress.h"
#include "training/core/schedule.h"
#include "training/core/target_form.h"
#include "training/evaluation/acceptance_probe.h"
#include "training/evaluation/head_report.h"
#include "training/evaluation/held_out_agreement.h"
#include "training/head_data/frozen_target.h"
#include "training/head_data/head_batches.h"
#include "training/head_data/head_data.h"
#include "training/head_data/responses.h"
#include "training/head_data/self_questions.h"
#include "training/head_data/state_source.h"
#include "training/heads/head_export.h"

namespace outrider::training {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kHistoryInterval = 20;  // steps per point of the loss curve
constexpr int64_t kStepsBeforeFit = 5;    // that show a run with a time limit how long a step takes

// The data a run learns from and the probe that measures it.
struct HeadMaterial {
  const FrozenTarget& target;
  const HeadData& data;
  StateSource& states;
  const AcceptanceProbe& probe;
};

// Tokens that were trained on since this process began, and where the time went.
struct TrainingSpeed {
  using Clock = std::chrono::steady_clock;

  int64_t tokens = 0;
  double states_s = 0.0, steps_s = 0.0;

  // Adds the time since `start` to `sum`.
  static void add(double& sum, Clock::time_point start) {
    sum += std::chrono::duration<double>(Clock::now() - start).count();
  }
  // "512 tokens/s: states 1800, training 720"
  std::string text() const {
    const auto rate = [this](double seconds) {
      return static_cast<double>(tokens) / std::max(1e-9, seconds);
    };
    char line[96];
    std::snprintf(line, sizeof line, "%.0f tokens/s: states %.0f, training %.0f", rate(states_s + steps_s),
                  rate(states_s), rate(steps_s));
    return line;
  }
};

class HeadRun {
 public:
  HeadRun(const HeadRecipe& recipe, const HeadOptions& options, const HeadMaterial& material,
          const DraftHead& head, at::Device device)
      : recipe_(recipe),
        options_(options),
        target_(material.target),
        data_(material.data),
        states_(material.states),
        probe_(material.probe),
        head_(head),
        device_(device),
        parameters_(head.parameters()),
        optimizer_(parameters_, {.weight_decay = options.weight_decay,
                                 .max_gradient_norm = options.max_gradient_norm,
                                 .is_muon = options.is_muon,
                                 .products = options.products}),
        schedule_{options.learning_rate, options.final_learning_rate, options.warmup, options.steps,
                  options.is_linear} {}

  Status begin();
  Status train();

 private:
  Result<double> train_step(int64_t step);
  void fit_steps(int64_t done, int64_t taken, TrainingSpeed::Clock::time_point start);
  Status evaluate(int64_t step);
  std::vector<double> rankings(int64_t step) const;
  Status serve(const fs::path& folder, AcceptancePoint& point) const;
  std::string accuracy_text() const;
  int64_t parameter_count() const;
  Status save(int64_t step);
  Status finish();
  fs::path checkpoints() const { return options_.out / "checkpoints"; }
  std::string fingerprint() const;

  const HeadRecipe& recipe_;
  const HeadOptions& options_;
  const FrozenTarget& target_;
  const HeadData& data_;
  StateSource& states_;
  const AcceptanceProbe& probe_;
  const DraftHead& head_;
  at::Device device_;
  NamedTensors parameters_;
  Optimizer optimizer_;
  RateSchedule schedule_;
  TrainingSpeed speed_;
  RunHistory history_;
  std::vector<Baseline> baselines_;
  double last_norm_ = 0.0;
};

// The facts that must not change when a run is resumed; steps and learning rates may change.
std::string HeadRun::fingerprint() const {
  nlohmann::json shapes = nlohmann::json::object();
  for (const auto& [name, tensor] : parameters_) shapes[name] = tensor.sizes().vec();
  const nlohmann::json facts = {{"kind", recipe_.command},
                                {"target", target_.fingerprint()},
                                {"arithmetic", target_.arithmetic()},
                                {"data", data_.fingerprint()},
                                {"seed", options_.seed},
                                {"hard", options_.hard_share},
                                {"weight_decay", options_.weight_decay},
                                {"muon", options_.is_muon},
                                {"init", options_.init.string()},
                                {"products", c10::toString(options_.products)},
                                {"config", head_.exported().config},
                                {"facts", head_.fingerprint()},
                                {"parameters", shapes}};
  return facts.dump();
}

Status HeadRun::begin() {
  OUTRIDER_TRY(history_, begin_run(checkpoints(), options_.resume, parameters_, optimizer_, fingerprint()));
  return {};
}

Result<double> HeadRun::train_step(int64_t step) {
  const uint64_t seed = mix64(options_.seed ^ mix64(static_cast<uint64_t>(step)));
  std::vector<Window> windows = data_.batch(step);
  const std::vector<Document> rewritten = head_.rewritten(windows, seed);
  for (size_t i = 0; i < rewritten.size(); ++i)
    windows[i] = {.tokens = rewritten[i].tokens, .counted = rewritten[i].counted, .id = Window::kNewText};
  auto start = TrainingSpeed::Clock::now();
  OUTRIDER_TRY(HeadBatch batch, make_head_batch(windows, states_, device_));
  TrainingSpeed::add(speed_.states_s, start);
  for (const Window& window : windows) speed_.tokens += std::ssize(window.tokens);
  batch.seed = seed;
  batch.progress = static_cast<double>(step) / static_cast<double>(schedule_.steps);
  start = TrainingSpeed::Clock::now();
  const at::Tensor loss = head_.loss(batch).loss;
  loss.backward();
  last_norm_ = optimizer_.step(schedule_.at(step));
  const auto value = loss.item<double>();
  TrainingSpeed::add(speed_.steps_s, start);
  if (std::isfinite(value) && std::isfinite(last_norm_)) return value;
  return input_error("the loss is no longer finite at step " + std::to_string(step) +
                     "; resume with a lower --learning-rate");
}

// Measures the drafter in serving. The best one so far is exported to the run's folder.
Status HeadRun::evaluate(int64_t step) {
  log_info("measuring the drafter of step " + std::to_string(step));
  const auto loss_of = [this](const HeadBatch& batch) { return head_.loss(batch); };
  OUTRIDER_TRY(const HeldOutResult held_out, measure_held_out(loss_of, data_, states_, device_));
  nlohmann::json learned = nlohmann::json::object();
  if (!recipe_.ranks_key.empty()) learned[recipe_.ranks_key] = held_out.ranks;
  const fs::path candidate = options_.out / "candidate";
  OUTRIDER_RETURN_IF_ERROR(write_head(head_, target_, learned, candidate));
  AcceptancePoint point{
      .step = step, .agreement = held_out.agreement, .foreseen = held_out.tokens_per_pass()};
  OUTRIDER_RETURN_IF_ERROR(serve(candidate, point));
  learned["outrider_ranking_temperature"] = point.ranking;
  if (!held_out.agreement.empty()) learned["outrider_agreement"] = held_out.agreement.front();
  OUTRIDER_RETURN_IF_ERROR(write_head_config(head_, target_, learned, candidate));
  history_.held_out.push_back({step, held_out.loss});
  double best = 0.0;
  for (const AcceptancePoint& earlier : history_.acceptance) best = std::max(best, worth(earlier));
  history_.acceptance.push_back(point);
  char text[200];
  std::snprintf(text, sizeof text,
                "step %lld: held-out loss %.4f, acceptance length %.2f (chain) %.2f (tree), foreseen %.2f%s",
                static_cast<long long>(step), held_out.loss, point.chain, point.tree, point.foreseen,
                worth(point) > best ? ", the best so far" : "");
  log_info(point.shared_tree > 0.0 ? std::string(text) + "; one tree of all drafts: " +
                                         std::to_string(point.shared_tree).substr(0, 4)
                                   : text);
  if (worth(point) > best) {
    OUTRIDER_RETURN_IF_ERROR(move_head(candidate, options_.out));
  } else {
    std::error_code ignored;
    fs::remove_all(candidate, ignored);
  }
  return write_durably(options_.out / "report.html", render_head_report({.kind = recipe_.command,
                                                                         .target = target_.name(),
                                                                         .history = history_,
                                                                         .baselines = baselines_,
                                                                         .steps = schedule_.steps,
                                                                         .parameters = parameter_count()}));
}

// The temperatures at which the nodes of a tree are ranked in the measurement at `step`. Each costs a run
// over all prompts, so that only the first and the last measurement look for the best one.
std::vector<double> HeadRun::rankings(int64_t step) const {
  if (history_.acceptance.empty() || step == schedule_.steps) return {1.0, 0.6, 0.4, 0.25};
  return {history_.acceptance.back().ranking};
}

// Measures acceptance in serving, for a chain and for trees of as many levels. A tree's nodes are ranked by
// the drafter's probabilities at a temperature of their own: it has learned the target's distribution, which
// is flatter than the probability that a token is the target's likeliest one.
Status HeadRun::serve(const fs::path& folder, AcceptancePoint& point) const {
  const auto depth = std::min(options_.measured_depth, std::ssize(point.agreement));
  const auto speculation = [&](TreeKind tree) {
    return probe_.speculation(recipe_.decoding_type, folder, tree, depth);
  };
  OUTRIDER_TRY(const ServedAcceptance chain, probe_.measure(speculation(TreeKind::kChain)));
  point.chain = chain.tokens_per_pass;
  point.accepted = chain.by_depth;
  for (const double temperature : rankings(point.step)) {
    SpeculativeOptions tree = speculation(TreeKind::kDynamic);
    tree.ranking_temperature = temperature;
    OUTRIDER_TRY(const ServedAcceptance served, probe_.measure(tree));
    if (served.tokens_per_pass <= point.tree) continue;
    point.tree = served.tokens_per_pass;
    point.ranking = temperature;
  }
  std::vector<fs::path> together = head_.companions();
  if (together.empty()) return {};
  together.push_back(folder);
  OUTRIDER_TRY(const ServedAcceptance shared,
               probe_.measure(probe_.shared_speculation(std::move(together), depth)));
  point.shared_tree = shared.tokens_per_pass;
  return {};
}

// "  held-out accuracy 0.61": the share of first drafts that were right when last measured.
std::string HeadRun::accuracy_text() const {
  if (history_.acceptance.empty() || history_.acceptance.back().agreement.empty()) return {};
  char text[40];
  std::snprintf(text, sizeof text, "  held-out accuracy %.2f", history_.acceptance.back().agreement.front());
  return text;
}

int64_t HeadRun::parameter_count() const {
  int64_t count = 0;
  for (const auto& [name, tensor] : parameters_) count += tensor.numel();
  return count;
}

Status HeadRun::save(int64_t step) {
  OUTRIDER_RETURN_IF_ERROR(save_checkpoint(checkpoints(), parameters_, optimizer_, history_, fingerprint()));
  log_info("checkpoint at step " + std::to_string(step));
  return {};
}

// As many steps in all as the speed since `start` allows within the time limit.
void HeadRun::fit_steps(int64_t done, int64_t taken, TrainingSpeed::Clock::time_point start) {
  double elapsed = 0.0;
  TrainingSpeed::add(elapsed, start);
  const double left = (options_.time_limit_s - elapsed) / elapsed * static_cast<double>(taken);
  schedule_.steps = done + std::max<int64_t>(0, std::llround(left));
}

Status HeadRun::train() {
  OUTRIDER_RETURN_IF_ERROR(make_directories(checkpoints()));
  log_info("measuring drafters to compare with");
  OUTRIDER_TRY(baselines_, probe_.baselines(head_.companions()));
  for (const Baseline& baseline : baselines_)
    log_info(baseline.name + ": acceptance length " +
             std::to_string(baseline.served.tokens_per_pass).substr(0, 4));
  const int64_t first = optimizer_.steps_taken();
  if (options_.time_limit_s > 0) schedule_.steps = std::max(options_.steps, first + kStepsBeforeFit);
  Progress progress("training " + recipe_.command, schedule_.steps, first);
  const InterruptGuard guard({SIGINT, SIGTERM}, InterruptGuard::Repeats::kEndProgram);
  const auto start = TrainingSpeed::Clock::now();
  for (int64_t step = first; step < schedule_.steps; ++step) {
    OUTRIDER_TRY(const double loss, train_step(step));
    history_.unfinished += loss;
    const int64_t done = step + 1;
    if (done % kHistoryInterval == 0) {
      history_.training.push_back({done, std::exchange(history_.unfinished, 0.0) / kHistoryInterval});
    }
    char detail[192];
    std::snprintf(detail, sizeof detail, "loss %.3f  gradient %.2f  rate %.1e  %s%s", loss, last_norm_,
                  schedule_.at(step), speed_.text().c_str(), accuracy_text().c_str());
    if (options_.time_limit_s > 0 && done - first >= kStepsBeforeFit) fit_steps(done, done - first, start);
    progress.expect(schedule_.steps);
    progress.update(done, detail);
    if (done == schedule_.steps) break;
    // Neither a signal nor a failed evaluation loses the steps taken: the checkpoint is written first.
    Status ended;
    if (InterruptGuard::interrupted()) {
      ended = stopped_error(done);
    } else if (done % options_.evaluate_every == 0) {
      ended = evaluate(done);
    }
    if (done % options_.checkpoint_every == 0 || !ended.ok()) OUTRIDER_RETURN_IF_ERROR(save(done));
    OUTRIDER_RETURN_IF_ERROR(ended);
  }
  return finish();
}

// The last measurement takes long. A run makes it when it is resumed, if it ended there or the measurement
// failed.
Status HeadRun::finish() {
  const int64_t step = optimizer_.steps_taken();
  if (!history_.acceptance.empty() && history_.acceptance.back().step == step) return {};
  OUTRIDER_RETURN_IF_ERROR(save(step));
  OUTRIDER_RETURN_IF_ERROR(evaluate(step));
  return save(step);
}

int thread_count(const HeadOptions& options) {
  return options.threads > 0 ? options.threads
                             : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

// Error: the kind of drafter, or libtorch on a GPU, does not take this family.
Status check_form(const HeadRecipe& recipe, const ModelConfig& target, at::Device device) {
  if (has_llama_form(target)) return {};
  if (!recipe.takes_any_target) {
    return usage_error(recipe.command + ": expected a target of the form of Llama, Mistral or Qwen, found " +
                       target.family + "; eagle3 can be trained for it");
  }
  if (device.is_cpu()) return {};
  return usage_error("libtorch runs targets of the form of Llama, Mistral or Qwen, found " + target.family +
                     "; add --target-device cpu");
}

}  // namespace

Result<HeadData> open_head_data(const HeadOptions& options, const FrozenTarget& target) {
  if (options.data.empty() && options.self_questions == 0)
    return usage_error("--data or --self-questions is expected");
  std::vector<DocumentSource> sources;
  for (const fs::path& path : options.data) {
    OUTRIDER_TRY(std::vector<DocumentSource> read,
                 read_documents(path, target.file(), options.regenerate > 0));
    for (DocumentSource& source : read) sources.push_back(std::move(source));
  }
  const bool is_regenerated = options.regenerate > 0 || options.self_questions > 0;
  if (is_regenerated) {
    DocumentSource questions;
    if (options.self_questions > 0) {
      OUTRIDER_TRY(questions, self_questions(options, target));
    }
    OUTRIDER_TRY(sources, regenerate_responses(sources, questions, options, target));
  }
  return HeadData::create(std::move(sources),
                          {.context = options.context,
                           .batch_tokens = options.batch_tokens,
                           .windows_per_source = is_regenerated ? 0 : options.windows_per_source,
                           .held_out_one_in = options.held_out_one_in,
                           .seed = options.seed});
}

Result<std::unique_ptr<FrozenTarget>> open_target(const HeadRecipe& recipe, const HeadOptions& options) {
  const std::string& name = options.target_device.empty() ? options.device : options.target_device;
  OUTRIDER_TRY(const at::Device device, open_device("--target-device", name));
  OUTRIDER_TRY(std::unique_ptr<FrozenTarget> target,
               FrozenTarget::open(options.target, thread_count(options)));
  OUTRIDER_RETURN_IF_ERROR(check_form(recipe, target->config(), device));
  if (!device.is_cpu()) target->move_to(device, options.products);
  if (options.context <= target->config().max_context) return target;
  return usage_error("--context: at most the target's " + std::to_string(target->config().max_context) +
                     " tokens are expected, found " + std::to_string(options.context));
}

Status train_head(const HeadRecipe& recipe, HeadOptions options) {
  OUTRIDER_TRY(const at::Device device, open_device("--device", options.device));
  options.threads = thread_count(options);
  at::set_num_threads(options.threads);
  log_info("training " + recipe.command + " for " + options.target.string() + ": " +
           std::to_string(options.steps) + " steps of at most " + std::to_string(options.batch_tokens) +
           " tokens on " + options.device + ", threads: " + std::to_string(options.threads));
  OUTRIDER_RETURN_IF_ERROR(make_directories(options.out));
  OUTRIDER_TRY(const std::unique_ptr<FrozenTarget> target, open_target(recipe, options));
  OUTRIDER_TRY(const HeadData data, open_head_data(options, *target));
  log_info(std::to_string(data.window_count()) + " windows with " + std::to_string(data.counted_tokens()) +
           " tokens to predict");
  const std::vector<int64_t> counts = data.token_counts(target->config().vocab_size);
  OUTRIDER_TRY(
      const std::unique_ptr<DraftHead> head,
      recipe.make({.target = *target, .options = options, .token_counts = counts, .device = device}));
  if (!options.init.empty()) {
    OUTRIDER_RETURN_IF_ERROR(read_head(options.init, *head));
    log_info("beginning with " + options.init.string());
  }
  FeatureNeeds needs = head->needs();
  needs.type = options.products;
  OUTRIDER_RETURN_IF_ERROR(target->want(needs));
  OUTRIDER_TRY(const AcceptanceProbe probe, AcceptanceProbe::create(options, *target, data));
  OUTRIDER_TRY(StateSource states,
               StateSource::open(
                   *target, {.folder = options.feature_cache, .max_bytes = options.feature_cache_mib << 20}));
  HeadRun run(recipe, options, {.target = *target, .data = data, .states = states, .probe = probe}, *head,
              device);
  OUTRIDER_RETURN_IF_ERROR(run.begin());
  return run.train();
}

}  // namespace outrider::training
