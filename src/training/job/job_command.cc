// SPDX-License-Identifier: Apache-2.0
#include "training/job/job_command.h"

#include <CLI/CLI.hpp>
#include <memory>

#include "training/job/head_job.h"

namespace outrider::training {
namespace {

void add_job_options(CLI::App& command, JobOptions& options) {
  const auto positive = CLI::PositiveNumber;
  command.add_option("MODEL", options.model, "folder, .gguf file or name, as outrider generate takes it")
      ->required();
  command.add_option("--kind", options.kind, "kind of the head; eagle3 takes every family");
  CLI::Option* hours = command.add_option("--hours", options.hours, "longest time for all")->check(positive);
  command.add_option("--steps", options.steps, "steps of training, instead of a time; 0: none")
      ->check(CLI::NonNegativeNumber)
      ->excludes(hours);
  command.add_option(
      "--text", options.text,
      ".jsonl files with prompts (\"prompt\", \"messages\" or \"text\") or .txt files; the model "
      "writes the prompts that are missing, or all");
  command.add_option("--out", options.out, "folder of the job; none: MODEL-KIND-job");
  command.add_option("--install", options.install, "folder for the head; none: beside the model");
  command.add_option("--device", options.head.device, "cpu or cuda, for the training");
  command.add_flag("--dry-run", options.is_dry, "only say what would be done, and how long it would take");
}

void add_size_options(CLI::App& command, HeadOptions& head) {
  const auto positive = CLI::PositiveNumber;
  command.option_defaults()->group("Sizes");
  command.add_option("--context", head.context, "tokens of the longest text")->check(positive);
  command.add_option("--batch-tokens", head.batch_tokens, "tokens per step, at most")->check(positive);
  command.add_option("--response-tokens", head.response_tokens, "longest answer")->check(positive);
  command.add_option("--prompt-limit", head.prompt_limit, "held-out prompts that are measured")
      ->check(positive);
  command.add_option("--measured-tokens", head.measured_tokens, "tokens generated for each")->check(positive);
  command.add_option("--threads", head.threads, "CPU threads; 0: one per core")
      ->check(CLI::NonNegativeNumber);
  command.add_option("--seed", head.seed, "seed of texts, first weights and order");
}

}  // namespace

std::function<Status()> add_job_command(CLI::App& app) {
  auto options = std::make_shared<JobOptions>();
  CLI::App* command =
      app.add_subcommand("head", "Make a head for a model: text, training, measurement, installation, proof");
  command->option_defaults()->always_capture_default();
  add_job_options(*command, *options);
  add_size_options(*command, options->head);
  return [options]() -> Status { return run_head_job(*options); };
}

}  // namespace outrider::training
