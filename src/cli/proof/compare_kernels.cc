// SPDX-License-Identifier: Apache-2.0
#include "cli/proof/compare_kernels.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/prompt_set.h"
#include "cli/proof/verified_requests.h"
#include "cli/reports/completion_json.h"
#include "cli/terminal.h"
#include "cli/timed_completion.h"
#include "config/message_text.h"
#include "kernels/kernel_table.h"
#include "open/device_choice.h"
#include "open/parts.h"

namespace outrider {
namespace {

constexpr int kLogprobs = 5;  // of the likeliest tokens; each depends on all logits of its row

// Something that computes the model.
struct Machine {
  std::string name;
  ComputeDevice device = ComputeDevice::kCpu;
  std::string kernels = {};  // of the processor
};

struct Machines {
  std::vector<Machine> compared;
  std::vector<std::string> others;  // tables with an arithmetic of their own
};

Machines machines_for(const Settings& settings) {
  Machines machines;
  for (const std::string_view name : available_kernels()) {
    if (has_portable_bits(name)) {
      machines.compared.push_back({.name = std::string(name), .kernels = std::string(name)});
    } else {
      machines.others.emplace_back(name);
    }
  }
  const ComputeDevice device = settings.engine.device;
  if (device == ComputeDevice::kEmulated || device == ComputeDevice::kCuda)
    machines.compared.push_back({.name = std::string(device_name(device)), .device = device});
  return machines;
}

// For each mode the completions of all prompts, without drafts and then with them.
struct Output {
  std::vector<std::vector<Completion>> completions;
  int64_t tokens = 0;
  std::string drafter;
};

Result<Output> run_machine(const Settings& settings, const Machine& machine,
                           std::optional<PreparedPrompts>& prepared) {
  OUTRIDER_TRY(Names names, names_of(settings, Unasked::kAuto));
  names.options.device = machine.device;
  names.options.kernels = machine.kernels;
  OUTRIDER_TRY(const std::unique_ptr<Engine> engine, open_engine(names));
  if (!prepared) {
    OUTRIDER_TRY(std::vector<PromptRecord> records, load_prompts(settings));
    OUTRIDER_TRY(prepared, prepare_prompts(std::move(records), *engine, settings));
  }
  Output output{.completions = {}, .tokens = 0, .drafter = snake_name(engine->info().drafter)};
  for (const Mode& mode : modes_for(settings)) {
    for (const bool speculates : {false, true}) {
      std::vector<Request> requests = requests_for(settings, *prepared, mode.sampling);
      for (Request& request : requests) {
        request.logprobs = kLogprobs;
        request.speculation.enabled = speculates;
        request.speculation.is_auto = false;
      }
      OUTRIDER_TRY(std::vector<Completion> completions, generate_together(*engine, requests));
      for (const Completion& completion : completions) output.tokens += std::ssize(completion.tokens);
      output.completions.push_back(std::move(completions));
    }
  }
  return output;
}

bool is_equal(const TokenLogprobs& a, const TokenLogprobs& b) {
  return a.logprob == b.logprob && a.top == b.top;
}

// The number of the first output token that differs, or that has other log-probabilities; nullopt: none.
std::optional<size_t> difference(const Completion& a, const Completion& b) {
  const size_t count = std::max(a.tokens.size(), b.tokens.size());
  for (size_t i = 0; i < count; ++i) {
    if (i >= a.tokens.size() || i >= b.tokens.size() || a.tokens[i] != b.tokens[i]) return i;
    if (i < a.logprobs.size() && i < b.logprobs.size() && !is_equal(a.logprobs[i], b.logprobs[i])) return i;
  }
  return std::nullopt;
}

// Compares with the output of the first, whose runs without drafts are the measure of all of a mode.
Status compare(const Machine& machine, const Output& output, const Output& first,
               const PreparedPrompts& prepared) {
  for (size_t run = 0; run < output.completions.size(); ++run) {
    const auto& expected = first.completions[run / 2 * 2];
    for (size_t i = 0; i < expected.size(); ++i) {
      const auto place = difference(expected[i], output.completions[run][i]);
      if (!place) continue;
      return input_error(fmt::format("different: {}, prompt {}, {} drafts: output token {}", machine.name,
                                     prepared.records[i].id, run % 2 == 0 ? "without" : "with", *place + 1));
    }
  }
  return {};
}

}  // namespace

Status compare_kernels(const Settings& settings) {
  const Machines machines = machines_for(settings);
  std::vector<std::string_view> names;
  for (const Machine& machine : machines.compared) names.push_back(machine.name);
  const std::vector<std::string_view> others(machines.others.begin(), machines.others.end());
  if (names.size() < 2) {
    return usage_error(
        fmt::format("expected two kernel tables with the same bits, found {}; add --device emulated",
                    names.empty() ? "none" : joined(names)));
  }
  std::optional<PreparedPrompts> prepared;
  std::optional<Output> first;
  int64_t tokens = 0;
  ProgressBar progress("compare", std::ssize(names));
  for (const Machine& machine : machines.compared) {
    OUTRIDER_TRY(Output output, run_machine(settings, machine, prepared));
    tokens += output.tokens;
    if (!first) first = output;
    OUTRIDER_RETURN_IF_ERROR(compare(machine, output, *first, *prepared));
    progress.advance();
  }
  if (settings.json) {
    write_output(json_line({{"identical", true},
                            {"compared", names},
                            {"other_arithmetic", others},
                            {"method", first->drafter},
                            {"prompts", prepared->records.size()},
                            {"tokens", tokens}}));
    return {};
  }
  write_output(
      fmt::format("identical: {} on {} prompts, {} tokens and their log-probabilities, with and without "
                  "the drafts of {}\nwith an arithmetic of their own: {}\n",
                  joined(names), prepared->records.size(), tokens, first->drafter, joined(others)));
  return {};
}

}  // namespace outrider
