// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "config/arguments.h"
#include "config/config_tree.h"
#include "config/option_table.h"
#include "config/settings.h"
#include "outrider/result.h"

namespace outrider {

// Everything that was given to one run, unconverted. The YAML file is read from the "config" option.
struct GivenOptions {
  Command command = Command::kGenerate;
  std::map<std::string, std::vector<std::string>, std::less<>>
      command_line;                                               // by option name; flags give "true"
  std::map<std::string, std::string> environment;                 // OUTRIDER_* variables
  std::vector<ForeignArgument> foreign = {};                      // from the command line
  std::map<std::string, std::string, std::less<>> spelling = {};  // options that were given by other names
  // Options that a program sets, in the form of a YAML file; they come before the environment.
  std::optional<ConfigNode> program_options = {};
  bool has_user_drafter = false;  // the program drafts itself: the keys of --speculative name no method
};

// Command line before environment before file before defaults, each value converted and checked by its row of
// the option table. Errors begin with the place the value was given at. Keys of other commands are taken with
// a warning, their variables in silence, and names of other systems as foreign_names.h says; unknown keys are
// errors, unknown variables warnings, since other programs may own them.
Result<Settings> resolve_settings(const GivenOptions& given);

}  // namespace outrider
