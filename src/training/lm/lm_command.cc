// SPDX-License-Identifier: Apache-2.0
#include "training/lm/lm_command.h"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <memory>

#include "training/core/common_options.h"
#include "training/core/device.h"
#include "training/lm/lm_trainer.h"

namespace outrider::training {
namespace {

struct LmArguments {
  LmOptions options;
  std::string products = "auto";
  std::vector<std::string> mixture;  // "name=share"
};

Status parse_mixture(const std::vector<std::string>& entries, Mixture& mixture) {
  if (entries.empty()) return {};
  mixture.clear();
  for (const std::string& entry : entries) {
    const size_t equals = entry.find('=');
    char* end = nullptr;
    const double share = equals == std::string::npos ? 0.0 : std::strtod(entry.c_str() + equals + 1, &end);
    if (equals == 0 || end == nullptr || *end != '\0' || end == entry.c_str() + equals + 1) {
      return usage_error("--mixture: name=share is expected, as in prose=0.25, found " + entry);
    }
    mixture[entry.substr(0, equals)] = share;
  }
  return {};
}

void add_batch_options(CLI::App& command, LmOptions& options) {
  command.option_defaults()->group("Optimizer");
  const auto positive = CLI::PositiveNumber;
  command.add_option("--batch-tokens", options.batch_tokens, "tokens per step")->check(positive);
  command
      .add_option("--context", options.context_lengths,
                  "window lengths; a step uses one, shorter ones more often")
      ->delimiter(',')
      ->check(positive);
  command.option_defaults()->group("Run");
  command.add_option("--init", options.init, "model folder of the same shape with the weights to begin with");
}

void add_distillation_options(CLI::App& command, LmOptions& options) {
  command.option_defaults()->group("Distillation");
  const auto positive = CLI::PositiveNumber;
  const auto share = CLI::Range(0.0, 1.0);
  ContinuationOptions& continuations = options.continuations;
  command.add_option("--distill", options.distill,
                     "teacher's model folder: learn its distribution instead of the text's");
  command
      .add_option("--prompts", continuations.prompts, "prompts the teacher continues, all domains together")
      ->check(positive);
  command.add_option("--new-tokens", continuations.new_tokens, "longest continuation")->check(positive);
  command
      .add_option("--sampled-share", continuations.sampled_share,
                  "share of the continuations that are sampled; the others are greedy")
      ->check(share);
  command.add_option("--temperature", continuations.temperature, "temperature of the sampled continuations")
      ->check(positive);
  command.add_option("--text-share", options.text_share, "share of the windows that hold text as it is")
      ->check(share);
  command
      .add_option("--hard", options.hard_share,
                  "share of the teacher's distribution moved to its most probable token")
      ->check(share);
}

}  // namespace

std::function<Status()> add_lm_command(CLI::App& app) {
  auto arguments = std::make_shared<LmArguments>();
  LmOptions& options = arguments->options;
  CLI::App* command =
      app.add_subcommand("lm", "Train a small Llama language model, from text or from a teacher");
  command->option_defaults()->always_capture_default();
  command->add_option("--data", options.data, "folder made by tools/prepare_training_data.py")->required();
  command->add_option("--tokenizer", options.tokenizer, "folder made by tools/train_tokenizer.py")
      ->required();
  command->add_option("--out", options.out, "model folder to write; checkpoints go below it")->required();
  command->add_option("--mixture", arguments->mixture, "share of each domain: prose=0.2,code=0.2,...")
      ->delimiter(',');
  add_shape_options(*command, options.shape);
  add_optimizer_options(*command, options);
  add_batch_options(*command, options);
  add_run_options(*command, options, arguments->products);
  add_distillation_options(*command, options);
  return [arguments]() -> Status {
    OUTRIDER_RETURN_IF_ERROR(parse_mixture(arguments->mixture, arguments->options.mixture));
    arguments->options.products = product_type(arguments->products, arguments->options.device);
    return train_lm(arguments->options);
  };
}

}  // namespace outrider::training
