// SPDX-License-Identifier: Apache-2.0
#include "training/lm/lm_trainer.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/interrupt_guard.h"
#include "base/log.h"
#include "platform/durable_file.h"
#include "training/core/autograd_ops.h"
#include "training/core/checkpoint.h"
#include "training/core/device.h"
#include "training/core/loss_plot.h"
#include "training/core/optimizer.h"
#include "training/core/progress.h"
#include "training/core/safetensors_file.h"
#include "training/core/schedule.h"
#include "training/core/token_data.h"
#include "training/core/tokenizer_files.h"
#include "training/lm/continuation.h"
#include "training/lm/llama.h"

namespace outrider::training {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kHistoryInterval = 20;    // steps per point of the loss curve
constexpr int64_t kEvaluationWindows = 64;  // per domain

// Inputs and targets of a batch on the device, int64 [windows, length] each.
struct DeviceBatch {
  at::Tensor inputs, targets;
};

DeviceBatch to_device(const TokenBatch& batch, at::Device device) {
  const at::Tensor rows =
      at::from_blob(const_cast<int32_t*>(batch.tokens.data()), {batch.windows, batch.length + 1},
                    at::TensorOptions().dtype(at::kInt))
          .to(at::kLong)
          .to(device);
  return {rows.narrow(1, 0, batch.length).contiguous(), rows.narrow(1, 1, batch.length).contiguous()};
}

struct Teacher {
  Llama model;
  LlamaWeights weights;
};

// One training run: the model, its data or teacher, and its history.
class LmRun {
 public:
  LmRun(const LmOptions& options, at::Device device, Llama model, TokenData data, TokenData held_out,
        std::optional<Teacher> teacher)
      : options_(options),
        device_(device),
        model_(std::move(model)),
        data_(std::move(data)),
        held_out_(std::move(held_out)),
        teacher_(std::move(teacher)),
        optimizer_(model_.parameters(),
                   {.weight_decay = options.weight_decay, .max_gradient_norm = options.max_gradient_norm}),
        schedule_{options.learning_rate, options.final_learning_rate, options.warmup, options.steps} {}

  Status begin();
  Status train();

 private:
  double train_step(int64_t step);
  at::Tensor loss_of(const LlamaWeights& weights, const DeviceBatch& batch);
  double held_out_loss(const std::string& source);
  void evaluate(int64_t step);
  Status save(int64_t step);
  Status export_model();
  fs::path checkpoints() const { return options_.out / "checkpoints"; }
  std::string fingerprint() const;

  const LmOptions& options_;
  at::Device device_;
  Llama model_;
  TokenData data_, held_out_;
  std::optional<Teacher> teacher_;
  Optimizer optimizer_;
  RateSchedule schedule_;
  RunHistory history_;
  double agreement_ = 0.0;  // share of the last batch's rows on which the teacher agrees
  double last_norm_ = 0.0;
};

// The options that must not change when a run is resumed. The number of steps may change, as it only moves
// the end of the schedule.
std::string LmRun::fingerprint() const {
  nlohmann::json facts = {{"hidden", options_.shape.hidden_size},
                          {"layers", options_.shape.layers},
                          {"heads", options_.shape.heads},
                          {"kv_heads", options_.shape.kv_heads},
                          {"ffn", options_.shape.ffn_size},
                          {"context", options_.context_lengths},
                          {"batch_tokens", options_.batch_tokens},
                          {"mixture", options_.mixture},
                          {"data_tokens", data_.total_tokens()},
                          {"seed", options_.seed},
                          {"init", options_.init.string()},
                          {"distilled", teacher_.has_value()},
                          {"products", c10::toString(options_.products)}};
  return facts.dump();
}

Status LmRun::begin() {
  OUTRIDER_TRY(history_,
               begin_run(checkpoints(), options_.resume, model_.parameters(), optimizer_, fingerprint()));
  return {};
}

at::Tensor LmRun::loss_of(const LlamaWeights& weights, const DeviceBatch& batch) {
  const at::Tensor hidden = model_.forward(weights, batch.inputs);
  if (!teacher_) return cross_entropy(hidden, weights.embedding, batch.targets.flatten());
  at::Tensor teacher_hidden;
  {
    const at::NoGradGuard no_grad;
    teacher_hidden = teacher_->model.forward(teacher_->weights, batch.inputs);
  }
  const DistillationLoss result = distillation_loss(hidden, weights.embedding, teacher_hidden,
                                                    teacher_->weights.embedding, options_.hard_share);
  agreement_ = result.agreement;
  return result.loss;
}

double LmRun::train_step(int64_t step) {
  const at::Tensor loss =
      loss_of(model_.compute_weights(options_.products), to_device(data_.batch(step), device_));
  loss.backward();
  last_norm_ = optimizer_.step(schedule_.at(step));
  return loss.item<double>();
}

double LmRun::held_out_loss(const std::string& source) {
  const at::NoGradGuard no_grad;
  const LlamaWeights weights = model_.compute_weights(options_.products);
  double total = 0.0;
  int64_t tokens = 0;
  for (const TokenBatch& batch : held_out_.evaluation_batches(source, kEvaluationWindows)) {
    const int64_t count = batch.windows * batch.length;
    total += loss_of(weights, to_device(batch, device_)).item<double>() * static_cast<double>(count);
    tokens += count;
  }
  return tokens > 0 ? total / static_cast<double>(tokens) : 0.0;
}

void LmRun::evaluate(int64_t step) {
  std::string line = "held-out loss at step " + std::to_string(step) + ":";
  char text[64];
  double weighted = 0.0, shares = 0.0;
  for (const TokenSource& source : held_out_.sources()) {
    const double loss = held_out_loss(source.name);
    weighted += loss * source.share;
    shares += source.share;
    std::snprintf(text, sizeof text, " %s %.3f", source.name.c_str(), loss);
    line += text;
  }
  std::snprintf(text, sizeof text, " mixture %.4f", weighted / shares);
  history_.held_out.push_back({step, weighted / shares});
  log_info(line + text);
}

Status LmRun::export_model() {
  OUTRIDER_RETURN_IF_ERROR(copy_tokenizer_files(options_.tokenizer, options_.out));
  OUTRIDER_TRY(const TokenizerFacts facts, read_tokenizer_facts(options_.tokenizer));
  OUTRIDER_RETURN_IF_ERROR(write_config(model_.config(), facts.document_end, options_.out));
  NamedTensors tensors = model_.huggingface_tensors();
  for (auto& [name, tensor] : tensors) tensor = tensor.to(at::kBFloat16).contiguous();
  OUTRIDER_RETURN_IF_ERROR(write_safetensors(options_.out / "model.safetensors", tensors));
  return write_durably(options_.out / "loss.svg",
                       render_loss_plot(options_.out.filename().string() + " training", history_));
}

Status LmRun::save(int64_t step) {
  OUTRIDER_RETURN_IF_ERROR(
      save_checkpoint(checkpoints(), model_.parameters(), optimizer_, history_, fingerprint()));
  OUTRIDER_RETURN_IF_ERROR(export_model());
  log_info("checkpoint at step " + std::to_string(step));
  return {};
}

Status LmRun::train() {
  OUTRIDER_RETURN_IF_ERROR(make_directories(checkpoints()));
  const int64_t first = optimizer_.steps_taken();
  Progress progress("training", options_.steps, first);
  const InterruptGuard guard({SIGINT, SIGTERM}, InterruptGuard::Repeats::kEndProgram);
  for (int64_t step = first; step < options_.steps; ++step) {
    const double loss = train_step(step);
    if (!std::isfinite(loss) || !std::isfinite(last_norm_)) {
      return input_error("the loss is no longer finite at step " + std::to_string(step) +
                         "; resume with a lower --learning-rate");
    }
    history_.unfinished += loss;
    const int64_t done = step + 1;
    if (done % kHistoryInterval == 0) {
      history_.training.push_back({done, std::exchange(history_.unfinished, 0.0) / kHistoryInterval});
    }
    char detail[128];
    std::snprintf(detail, sizeof detail, "loss %.3f  gradient %.2f  rate %.2e", loss, last_norm_,
                  schedule_.at(step));
    std::string text = detail;
    if (teacher_) text += "  agreement " + std::to_string(agreement_).substr(0, 5);
    progress.update(done, text);
    const bool is_last = done == options_.steps;
    const bool stops = InterruptGuard::interrupted() && !is_last;
    if ((done % options_.evaluate_every == 0 && !stops) || is_last) evaluate(done);
    if (done % options_.checkpoint_every == 0 || is_last || stops) OUTRIDER_RETURN_IF_ERROR(save(done));
    if (stops) return stopped_error(done);
  }
  return {};
}

Result<Llama> initial_model(const LmOptions& options, at::Device device) {
  if (options.init.empty()) return Llama::initialized(options.shape, options.seed, device);
  OUTRIDER_TRY(const NamedTensors tensors, read_safetensors(options.init / "model.safetensors"));
  return Llama::from_tensors(options.shape, tensors, device);
}

Result<Teacher> open_teacher(const LmOptions& options, at::Device device) {
  const LlamaConfig& student = options.shape;
  OUTRIDER_TRY(const LlamaConfig config, read_config(options.distill));
  if (config.vocab_size != student.vocab_size || config.max_context < student.max_context) {
    return usage_error("--distill: a teacher with a vocabulary of " + std::to_string(student.vocab_size) +
                       " and a context of at least " + std::to_string(student.max_context) +
                       " is expected, found " + std::to_string(config.vocab_size) + " and " +
                       std::to_string(config.max_context));
  }
  OUTRIDER_TRY(const NamedTensors tensors, read_safetensors(options.distill / "model.safetensors"));
  OUTRIDER_TRY(Llama model, Llama::from_tensors(config, tensors, device));
  const at::NoGradGuard no_grad;
  LlamaWeights weights = model.compute_weights(options.products);
  return Teacher{std::move(model), std::move(weights)};
}

// The folder that keeps the teacher's continuations of every domain.
fs::path continuations_dir(const LmOptions& options) { return options.out / "continuations"; }

// Lets the teacher continue the prompts of every domain; a resumed run keeps the continuations it has.
Status prepare_continuations(const LmOptions& options, const Teacher& teacher,
                             const TokenizerFacts& tokenizer) {
  OUTRIDER_RETURN_IF_ERROR(make_directories(continuations_dir(options)));
  double total = 0.0;
  for (const auto& [domain, share] : options.mixture) total += share;
  for (const auto& [domain, share] : options.mixture) {
    const fs::path file = continuations_dir(options) / (domain + ".u16");
    if (share == 0.0 || (options.resume && fs::exists(file))) continue;
    ContinuationOptions continuations = options.continuations;
    continuations.prompts = std::llround(share / total * static_cast<double>(continuations.prompts));
    OUTRIDER_RETURN_IF_ERROR(write_continuations(teacher.model, teacher.weights, tokenizer,
                                                 options.data / "prompts" / (domain + ".u16"), continuations,
                                                 file));
  }
  return {};
}

Result<TokenData> open_data(const LmOptions& options, const TokenizerFacts& tokenizer,
                            std::vector<TokenSource> sources) {
  return TokenData::open({.sources = std::move(sources),
                          .context_lengths = options.context_lengths,
                          .batch_tokens = options.batch_tokens,
                          .seed = options.seed,
                          .vocab_size = tokenizer.vocab_size,
                          .document_end = tokenizer.document_end});
}

std::vector<TokenSource> training_sources(const LmOptions& options) {
  if (options.distill.empty()) return domain_sources(options.data / "train", options.mixture);
  std::vector<TokenSource> sources =
      domain_sources(options.data / "train", options.mixture, options.text_share);
  for (TokenSource& source :
       domain_sources(continuations_dir(options), options.mixture, 1.0 - options.text_share)) {
    source.name += " continued";
    sources.push_back(std::move(source));
  }
  return sources;
}

}  // namespace

Status train_lm(const LmOptions& given) {
  LmOptions options = given;
  if (options.threads > 0) at::set_num_threads(options.threads);
  OUTRIDER_TRY(const at::Device device, open_device("--device", options.device));
  OUTRIDER_TRY(const TokenizerFacts tokenizer, read_tokenizer_facts(options.tokenizer));
  options.shape.vocab_size = tokenizer.vocab_size;
  options.shape.max_context =
      static_cast<int>(*std::max_element(options.context_lengths.begin(), options.context_lengths.end()));
  OUTRIDER_RETURN_IF_ERROR(check_shape(options.shape));

  std::optional<Teacher> teacher;
  if (!options.distill.empty()) {
    OUTRIDER_TRY(teacher, open_teacher(options, device));
    OUTRIDER_RETURN_IF_ERROR(prepare_continuations(options, *teacher, tokenizer));
  }
  OUTRIDER_TRY(TokenData data, open_data(options, tokenizer, training_sources(options)));
  OUTRIDER_TRY(TokenData held_out,
               open_data(options, tokenizer, domain_sources(options.data / "heldout", options.mixture)));
  OUTRIDER_TRY(Llama model, initial_model(options, device));
  LmRun run(options, device, std::move(model), std::move(data), std::move(held_out), std::move(teacher));
  OUTRIDER_RETURN_IF_ERROR(run.begin());
  return run.train();
}

}  // namespace outrider::training
