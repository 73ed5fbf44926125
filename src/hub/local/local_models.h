// SPDX-License-Identifier: Apache-2.0
// The models that lie on this machine, wherever a program keeps them, and their names.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "config/environment.h"
#include "hub/local/local_model.h"
#include "outrider/result.h"

namespace outrider {

// All models in these folders, by place and name.
std::vector<LocalModel> list_local_models(const ModelFolders& folders);

// The model of that name. Beside the name of a LocalModel these count: its parts without the organisation or
// the quant, the name of its file, with or without its ending, and the names of known_models(). Letter case
// does not count. Errors: there is none, with the way to get it; there are several, with all of them.
Result<LocalModel> find_local_model(std::string_view name, const std::vector<LocalModel>& models);

// The same; nullopt: there is none.
Result<std::optional<LocalModel>> look_for_model(std::string_view name,
                                                 const std::vector<LocalModel>& models);

}  // namespace outrider
