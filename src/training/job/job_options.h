// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "training/head_data/head_options.h"
#include "training/heads/draft_head.h"

namespace outrider::training {

// A head for a model, from nothing to its place beside the model.
struct JobOptions {
  std::filesystem::path model;    // as users name it
  std::filesystem::path out;      // folder of the job; empty: "MODEL-KIND-job" in the current folder
  std::filesystem::path install;  // folder in which the head is put; empty: beside the model
  std::string kind = "eagle3";    // subcommand of its recipe
  double hours = 8.0;             // at most, where `steps` is 0
  int64_t steps = 0;              // of training; 0: as many as fit into `hours`
  std::vector<std::filesystem::path> text;  // prompts; the model writes what is missing of them
  bool is_dry = false;                      // prints the plan, and changes nothing
  // Sizes and the machine: context, batch_tokens, response_tokens, prompt_limit, measured_tokens, device,
  // threads, seed. The plan says the rest.
  HeadOptions head = usual_options();

  static HeadOptions usual_options() {
    HeadOptions usual;
    usual.context = 512;
    usual.response_tokens = 256;
    usual.learning_rate = 2e-3;
    usual.is_muon = true;
    usual.prompt_limit = 24;
    usual.measured_tokens = 64;
    usual.measured_depth = 5;
    return usual;
  }
};

}  // namespace outrider::training
