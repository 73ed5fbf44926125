// SPDX-License-Identifier: Apache-2.0
// One function per command, each in the file of its name.
#pragma once

#include "config/settings.h"
#include "outrider/result.h"

namespace outrider {

Status run_generate(const Settings& settings);
Status run_chat(const Settings& settings);
Status run_score(const Settings& settings);
Status run_tokenize(const Settings& settings);
Status run_inspect(const Settings& settings);
Status run_bench(const Settings& settings);
// Measures a server with OpenAI's API under load.
// Measures drafting here for a server elsewhere, over the known networks.
// Error: an output differs.
Status run_verify_lossless(const Settings& settings);
// Checks whether a drafter fits a target and makes it faster.
Status run_doctor(const Settings& settings);
Status run_quantize(const Settings& settings);
// Fetches a model from the Hub. SIGINT and SIGTERM end it; the same command goes on later.
Status run_pull(const Settings& settings);
Status run_models(const Settings& settings);
// Forwards connections as a slow or broken network would, until a signal ends it.
// Serves until a signal ends it.
Status run_serve(const Settings& settings);

}  // namespace outrider
