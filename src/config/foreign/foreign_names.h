// SPDX-License-Identifier: Apache-2.0
// Names of options and keys in other systems: TensorRT-LLM, vLLM, llama.cpp and SGLang. Command line,
// files and docs/reference/coming_from.md read the tables; a name that is in neither them nor our own
// tables is an error.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "config/foreign/foreign_tables.h"
#include "outrider/result.h"

namespace outrider {

// Options of command lines and of configuration files. A dot joins the keys of nested maps. `here` is the
// name of an option, or "speculative." and the name of a key of --speculative.
std::span<const ForeignName> foreign_options();
// Keys of a speculative configuration.
std::span<const ForeignName> foreign_keys();

// Why a method of another system is no method here; empty: nothing is known against the name.
std::string_view reason_against(std::string_view method);

bool belongs_to_system(const ForeignName& name, std::string_view system);

// The key of --speculative that an option stands for; empty: none.
std::string_view speculative_key_of(const ForeignName& option);

// Dashes and underscores, letter case and leading dashes do not matter, except that names with one leading
// dash are found only as they are. Flags that are no options here are found with "--no-" before them, too.
// nullptr: no such name.
const ForeignName* find_foreign(std::span<const ForeignName> names, std::string_view name);

// Whether a value of value_here() leaves the option as it is, with a line that says so.
bool leaves_default(const ForeignName& name, std::string_view value);

// The value of `name` as it is written here. Errors: it is not among `values`; the name is refused.
Result<std::string> value_here(const ForeignName& name, std::string_view value);

// "has no effect here: REMARK".
std::string no_effect(const ForeignName& name);

// Says for a table of Markdown what a name is here. is_key: `here` is a key of --speculative.
std::string meaning_here(const ForeignName& name, bool is_key);

// docs/reference/coming_from.md.
std::string foreign_reference();

}  // namespace outrider
