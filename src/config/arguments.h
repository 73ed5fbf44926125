// SPDX-License-Identifier: Apache-2.0
// Translates command lines of other systems into command lines of this program.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "config/foreign/foreign_names.h"
#include "config/settings.h"
#include "outrider/result.h"

namespace outrider {

// An argument of another system that is no option here: it has no effect, or is a key of --speculative.
struct ForeignArgument {
  std::string place;  // as it was given: "--draft-max"
  const ForeignName* name = nullptr;
  std::string value;     // as it is written here
  std::string key = {};  // where `name` is null: the key, as in --speculative-config.KEY
};

struct Arguments {
  std::vector<std::string> own;  // in our words
  std::vector<ForeignArgument> foreign;
  std::map<std::string, std::string, std::less<>> spelling;  // names of options that were given otherwise
};

// Translates the arguments after the name of a command. Options may be written with underscores. Unknown
// options stay as they are. Errors: a value that cannot be taken or is missing; two names of one option with
// different values.
Result<Arguments> translate_arguments(Command command, std::span<const std::string> given);

}  // namespace outrider
