// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/commands.h"
#include "cli/completion_json.h"
#include "cli/draft_view.h"
#include "cli/open_engine.h"
#include "cli/prompt_text.h"
#include "cli/terminal.h"
#include "cli/timed_completion.h"

namespace outrider {

Status run_generate(const Settings& settings) {
  OUTRIDER_RETURN_IF_ERROR(check_one_input(settings, "--prompt, --prompt-file and --prompt-ids"));
  if (settings.json && settings.show_draft) return usage_error("expected --json or --show-draft, found both");
  OUTRIDER_TRY(const std::unique_ptr<Engine> engine, open_engine(settings));
  Request request = settings.request;
  OUTRIDER_TRY(request.prompt, input_tokens(settings, *engine));

  const bool colour = output_takes_colour();
  MarkedStream marked(*engine, colour);
  const auto show = [&](RequestId, const Progress& progress) {
    if (settings.json) return;
    if (settings.show_draft) {
      write_output(marked.push(progress));
    } else {
      write_output(progress.text);
    }
    std::fflush(stdout);
  };
  OUTRIDER_TRY(const TimedCompletion timed, generate_timed(*engine, request, show));
  if (settings.json) {
    write_output(json_line(completion_json(engine->info(), request.prompt, timed)));
  } else if (settings.show_draft) {
    write_output(marked.finish() + "\n\n" + mark_legend(colour) + "\n");
    write_output(statistics_line(timed.completion, timed.tokens_per_second()) + "\n");
  } else {
    write_output("\n");
  }
  return {};
}

}  // namespace outrider
