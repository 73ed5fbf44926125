// SPDX-License-Identifier: Apache-2.0
// Names of options and keys in other systems: TensorRT-LLM, vLLM, llama.cpp and SGLang. Command line,
// files and docs/reference/coming_from.md read the tables; a name that is in neither them nor our own
// tables is an error.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "outrider/result.h"

namespace outrider {

struct ForeignName {
  std::string_view systems;      // separated by '|'
  std::string_view names;        // as written there, separated by '|': "--ctx-size|-c", "cuda_graph_config"
  std::string_view here = {};    // the option or key that it stands for; empty: it has no effect here
  std::string_view values = {};  // all that are taken, separated by '|': "bfloat16=bf16" is written "bf16"
                                 // here, and "false=" leaves the default; empty: all, as they are
  std::string_view remark = {};  // where `here` is empty: why nothing is lost
  bool is_flag = false;          // it takes no value on a command line
};

// Options of command lines and of configuration files. A dot joins the keys of nested maps. `here` is the
// name of an option, or "speculative." and the name of a key of --speculative.
std::span<const ForeignName> foreign_options();
// Keys of a speculative configuration.
std::span<const ForeignName> foreign_keys();

// The key of --speculative that an option stands for; empty: none.
std::string_view speculative_key_of(const ForeignName& option);

// Dashes and underscores, letter case and leading dashes do not matter, except that names with one leading
// dash are found only as they are. nullptr: no such name.
const ForeignName* find_foreign(std::span<const ForeignName> names, std::string_view name);

// The value of `name` as it is written here. Error: it is not among `values`.
Result<std::string> value_here(const ForeignName& name, std::string_view value);

// "has no effect here: REMARK".
std::string no_effect(const ForeignName& name);

// docs/reference/coming_from.md.
std::string foreign_reference();

}  // namespace outrider
