// SPDX-License-Identifier: Apache-2.0
#include "hub/local/remove_model.h"

#include <fmt/format.h>

#include <vector>

#include "cli/commands/commands.h"
#include "cli/terminal.h"
#include "config/environment.h"
#include "hub/local/local_models.h"
#include "hub/remote/quant_name.h"

namespace outrider {

Status run_rm(const Settings& settings) {
  if (settings.removed_model.empty())
    return usage_error("expected the name of a model that outrider models lists, found none");
  const ModelFolders folders = model_folders();
  const std::vector<LocalModel> models = list_local_models(folders);
  OUTRIDER_TRY(const LocalModel model, find_local_model(settings.removed_model, models));
  OUTRIDER_TRY(const int64_t bytes, remove_local_model(model, folders.outrider));
  write_output(fmt::format("removed {} ({})\n", model.name, size_text(bytes)));
  return {};
}

}  // namespace outrider
