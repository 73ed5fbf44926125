// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "config/environment.h"
#include "config/settings.h"

namespace outrider {

// Decides what `serve` without MODEL and --models serves: all models in the folders, or their only one. Where
// there is none, or an option is about one model, the settings stay, and mean the model of other commands.
void choose_served_models(Settings& settings, const ModelFolders& folders);

// Why a server whose MODEL was not named serves one model, for the line that says it is ready; empty: no
// option is the reason.
std::string one_model_note(const Settings& settings);

}  // namespace outrider
