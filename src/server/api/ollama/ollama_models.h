// SPDX-License-Identifier: Apache-2.0
// Answers to the questions that Ollama's clients ask about models.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "server/api/api_error.h"
#include "server/api/api_limits.h"
#include "server/api/served_model.h"

namespace outrider {

// A Unix time as "2026-11-28T08:00:00Z".
std::string utc_time(int64_t seconds);

// GET /api/tags: the one model that is served.
std::string ollama_tags_body(const ServedModel& model);
// GET /api/ps: the same model, which is always in memory.
std::string ollama_ps_body(const ServedModel& model);
// GET /api/version: the version of this program, and the version of Ollama that has this API: clients refuse
// older versions.
std::string ollama_version_body();
// POST /api/show: {"model": name}. Error: 404, the model has another name.
ApiResult<std::string> ollama_show_body(std::string_view body, const ServedModel& model,
                                        const ApiLimits& limits);

}  // namespace outrider
