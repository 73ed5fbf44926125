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
// The time of a target pass for different numbers of rows. Up to 65 rows are a drafted tree, mostly a chain;
// more are a prompt chunk. Logits of all rows are computed. Every round measures all row counts, and a plain
// read of as many bytes as the weights have.
Status run_bench_rows(const Settings& settings);
// The time to the first token of random prompts, which no cache knows. Every round measures all lengths.
Status run_bench_prompts(const Settings& settings);
// Decodes several prompts at once, plainly and speculatively in turn.
Status run_bench_batch(const Settings& settings);
// All drafters on the same prompts. The page (or JSON) of --output is written again after every round of a
// drafter, so it remains whatever ends the run. SIGINT and SIGTERM end the run with the results until then.
// Error: the run ended early, or an output differs.
Status run_bench_drafters(const Settings& settings);
// Error: an output differs.
Status run_verify_lossless(const Settings& settings);
// Checks whether a drafter fits a target and makes it faster.
Status run_doctor(const Settings& settings);
Status run_quantize(const Settings& settings);
// Fetches a model from the Hub. SIGINT and SIGTERM end it; the same command goes on later.
Status run_pull(const Settings& settings);
Status run_models(const Settings& settings);
Status run_rm(const Settings& settings);
Status run_ps(const Settings& settings);
// Serves until a signal ends it.
Status run_serve(const Settings& settings);
// Answers a file of requests. SIGINT and SIGTERM end it; the same command goes on later. Error: the run ended
// early, or a request failed.
Status run_batch(const Settings& settings);

}  // namespace outrider
