// SPDX-License-Identifier: Apache-2.0
// The options that all subcommands of outrider-train share. Each fills fields of the subcommand's own struct;
// defaults differ.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

namespace outrider::training {

template <typename Options>
void add_optimizer_options(CLI::App& command, Options& options) {
  command.option_defaults()->group("Optimizer");
  const auto positive = CLI::PositiveNumber;
  command.add_option("--steps", options.steps, "optimizer steps in all")->check(positive);
  command.add_option("--learning-rate", options.learning_rate, "peak rate")->check(positive);
  command.add_option("--final-learning-rate", options.final_learning_rate, "rate at the last step");
  command.add_option("--warmup", options.warmup, "steps of linear warm-up");
  command.add_option("--weight-decay", options.weight_decay, "weight decay of matrices");
  command.add_option("--clip", options.max_gradient_norm, "largest gradient norm")->check(positive);
}

// `products` receives the name that product_type() takes.
template <typename Options>
void add_run_options(CLI::App& command, Options& options, std::string& products) {
  command.option_defaults()->group("Run");
  const auto positive = CLI::PositiveNumber;
  command.add_option("--seed", options.seed, "seed of the first weights and of the order of the data");
  command.add_option("--device", options.device, "cpu or cuda");
  command
      .add_option("--products", products,
                  "type of matrix products; auto: bf16 where the device has instructions for it, else f32")
      ->check(CLI::IsMember({"auto", "bf16", "f32"}));
  command.add_option("--threads", options.threads, "CPU threads; 0: one per core")
      ->check(CLI::NonNegativeNumber);
  command.add_option("--checkpoint-every", options.checkpoint_every, "steps between checkpoints")
      ->check(positive);
  command.add_option("--evaluate-every", options.evaluate_every, "steps between evaluations")
      ->check(positive);
  command.add_flag("--resume", options.resume, "go on from the newest checkpoint in --out");
}

}  // namespace outrider::training
