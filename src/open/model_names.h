// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <optional>

#include "config/environment.h"
#include "config/settings.h"
#include "hub/remote/hub_reference.h"
#include "outrider/result.h"

namespace outrider {

// Brings a model to this machine and returns its path; nullopt: it may not. An empty function fetches
// nothing.
using FetchModel = std::function<Result<std::optional<std::filesystem::path>>(const HubReference&)>;

// A command that names no model, or one that this machine does not have, brings it here.
struct FirstUse {
  FetchModel fetch = {};  // one that is named
  // One where none is named and SmolLM2 is not there; nullopt: the built-in one shall do. Empty: likewise.
  std::function<Result<std::optional<std::filesystem::path>>()> choose = {};
};

// The file of the model that commands use where none is named, whether or not it is there.
std::filesystem::path default_model_file(const ModelFolders& folders);

// Finds the models that the settings name and puts their paths in place of the names: MODEL, IN, and the
// models of --speculative. A path that exists stays as it is. Where a command needs MODEL and none is given,
// it becomes SmolLM2 or, where that is not on this machine, the chosen model or the built-in target, and a
// warning of the settings says so. Errors: a name is unknown or ambiguous; a model cannot be fetched.
Status find_models(Settings& settings, const FirstUse& first_use);

}  // namespace outrider
