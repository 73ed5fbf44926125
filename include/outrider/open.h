// SPDX-License-Identifier: Apache-2.0
// Opens an engine from options as text: options of the command line and of YAML (docs/reference/options.md),
// by our names or by names of other systems (docs/reference/coming_from.md).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "outrider/engine.h"
#include "outrider/result.h"

namespace outrider {

// An option with its value as a YAML file writes it: {"max_batch", "4"}. A dot leads into a map, as in
// {"speculative_config.max_draft_len", "4"}; a name that occurs several times has a list of values.
struct NamedOption {
  std::string name;
  std::string value;
};

struct OpenedEngine {
  std::unique_ptr<Engine> engine;
  Request request;                    // without a prompt; sampling, lengths and stops come from the options
  std::vector<std::string> warnings;  // a line each: options without effect here, a model that stands in
};

// Opens the model that `options` name, or the default one. Options come before the environment (OUTRIDER_*).
// With `user_drafter` they name no method. Errors: an unknown name, a value out of range, and all errors of
// Engine::open().
Result<OpenedEngine> open_with_options(std::span<const NamedOption> options,
                                       std::shared_ptr<Drafter> user_drafter = nullptr);

// Checks names and values of options as open_with_options() does, without the environment, and reads no
// model. `drafts_itself`: there will be a user_drafter.
Status check_options(std::span<const NamedOption> options, bool drafts_itself = false);

// Sets a parameter of one request: an option for sampling, length or stopping ("temperature", "stop"), or one
// that only requests have (docs/guides/library.md). Only lists take several values. Errors: an unknown
// name, or a value that cannot be taken.
Status set_parameter(Request& request, std::string_view name, std::span<const std::string> values);

}  // namespace outrider
