// SPDX-License-Identifier: Apache-2.0
#include "training/heads/head_command.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <utility>

#include "training/core/common_options.h"
#include "training/core/device.h"
#include "training/heads/head_trainer.h"

namespace outrider::training {
namespace {

struct HeadArguments {
  HeadRecipe recipe;
  HeadOptions options;
  std::string products = "auto";
};

void add_text_options(CLI::App& command, HeadOptions& options) {
  const auto positive = CLI::PositiveNumber;
  const auto not_negative = CLI::NonNegativeNumber;
  command.add_option("--target", options.target, "model folder or .gguf file of the target")->required();
  command
      .add_option("--data", options.data,
                  ".jsonl files (\"messages\", \"text\", or \"prompt\" and \"response\") and folders made by "
                  "tools/prepare_training_data.py")
      ->delimiter(',');
  command.add_option("--out", options.out, "folder to write; checkpoints go below it")->required();
  command.option_defaults()->group("Text");
  command.add_option("--context", options.context, "tokens of the longest window")->check(positive);
  command.add_option("--batch-tokens", options.batch_tokens, "tokens per step, at most")->check(positive);
  command
      .add_option("--windows-per-source", options.windows_per_source,
                  "windows drawn at random from each source of text that is not regenerated; 0: all")
      ->check(not_negative);
  command
      .add_option("--self-questions", options.self_questions,
                  "messages that the target itself writes as a user and then answers, in place of --data or "
                  "beside it")
      ->check(not_negative);
  command.add_option("--question-kinds", options.question_kinds,
                     ".jsonl file of the kinds of these messages (\"system\", \"question\" with {} for the "
                     "message, \"max_tokens\", \"temperature\"); none: as a user begins a chat");
  command
      .add_option("--regenerate", options.regenerate,
                  "prompts that the target answers itself, as many of each source; 0: text as it is")
      ->check(not_negative);
  command.add_option("--responses", options.responses,
                     "folder that keeps those answers, also for other runs; none: below --out");
  command.add_option("--response-tokens", options.response_tokens, "longest answer")->check(positive);
  command
      .add_option("--sampled-share", options.sampled_share,
                  "share of the answers that are sampled; the others are greedy")
      ->check(CLI::Range(0.0, 1.0));
  command.add_option("--temperature", options.temperature, "temperature of the sampled answers")
      ->check(positive);
  command
      .add_option("--writing-memory", options.writing_memory_mib,
                  "MiB for keys and values of texts that the target writes on a GPU")
      ->check(positive);
}

void add_head_options(CLI::App& command, HeadOptions& options) {
  command.option_defaults()->group("Head");
  if (command.get_option_no_throw("--init") == nullptr)  // draft models have their own
    command.add_option("--init", options.init, "folder of a head of this kind and shape to begin with");
  command.option_defaults()->group("Optimizer");
  command
      .add_option("--time-limit", options.time_limit_s,
                  "seconds of training, without the last measurement: as many steps as fit take the place of "
                  "--steps; "
                  "0: none")
      ->check(CLI::NonNegativeNumber);
  command.add_flag("--muon,!--adamw", options.is_muon,
                   "Muon for the matrices between hidden units, and AdamW for the others; or AdamW for all");
  command
      .add_option("--hard", options.hard_share,
                  "share of the target's distribution moved to its most probable token")
      ->check(CLI::Range(0.0, 1.0));
  command.option_defaults()->group("Run");
  command.add_option(
      "--target-device", options.target_device,
      "where the target's states are computed: cpu, by the kernels that serve, or cuda, by libtorch; "
      "none: --device");
  command.add_option("--feature-cache", options.feature_cache,
                     "folder that keeps the target's states; none: they are computed in every step");
  command.add_option("--feature-cache-size", options.feature_cache_mib, "largest size of that folder in MiB")
      ->check(CLI::PositiveNumber);
}

void add_measure_options(CLI::App& command, HeadOptions& options) {
  const auto positive = CLI::PositiveNumber;
  command.option_defaults()->group("Measuring with the serving engine");
  command.add_option("--prompts", options.prompts,
                     ".jsonl with held-out prompts (\"prompt\", \"messages\" or \"turns\"); none: beginnings "
                     "of held-out text");
  command.add_option("--prompt-limit", options.prompt_limit, "prompts used, spread over the file")
      ->check(positive);
  command.add_option("--measured-tokens", options.measured_tokens, "tokens generated per prompt")
      ->check(positive);
  command.add_option("--draft", options.draft, "a draft model to compare with");
  command.add_option("--measured-depth", options.measured_depth, "levels of drafts")
      ->check(CLI::Range(1, 16));
  command.add_option("--measured-nodes", options.measured_nodes, "nodes of drafted trees")
      ->check(CLI::Range(1, 1024));
}

}  // namespace

std::function<Status()> add_head_command(CLI::App& app, HeadRecipe recipe) {
  auto arguments = std::make_shared<HeadArguments>(HeadArguments{.recipe = std::move(recipe), .options = {}});
  arguments->options = arguments->recipe.defaults;
  CLI::App* command = app.add_subcommand(arguments->recipe.command, arguments->recipe.description);
  command->option_defaults()->always_capture_default();
  add_text_options(*command, arguments->options);
  command->option_defaults()->group("Head");
  if (arguments->recipe.add_options) arguments->recipe.add_options(*command);
  add_optimizer_options(*command, arguments->options);
  add_run_options(*command, arguments->options, arguments->products);
  add_head_options(*command, arguments->options);
  add_measure_options(*command, arguments->options);
  return [arguments]() -> Status {
    arguments->options.products = product_type(arguments->products, arguments->options.device);
    return train_head(arguments->recipe, arguments->options);
  };
}

}  // namespace outrider::training
