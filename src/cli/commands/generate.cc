// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "cli/answer_view.h"
#include "cli/chat_model.h"
#include "cli/commands/commands.h"
#include "cli/commands/remote_generate.h"
#include "cli/prompt_text.h"
#include "cli/reports/completion_json.h"
#include "cli/reports/draft_view.h"
#include "cli/reports/drafter_json.h"
#include "cli/reports/trace_html.h"
#include "cli/reports/trace_log.h"
#include "cli/reports/tree_view.h"
#include "cli/terminal.h"
#include "cli/timed_completion.h"
#include "open/drafter_report.h"
#include "open/parts.h"
#include "server/api/answers/message_parser.h"

namespace outrider {
namespace {

Status check_views(const Settings& settings) {
  if (settings.json && settings.generate.show_draft)
    return usage_error("expected --json or --show-draft, found both");
  if (settings.generate.show_tree && settings.generate.show_draft)
    return usage_error("expected --show-tree or --show-draft, found both");
  if (wants_chat(settings) && settings.input.ids)
    return usage_error("expected --prompt-ids or --chat, found both: token ids are no message");
  return settings.trace_file.empty() ? Status() : check_trace_file(settings.trace_file);
}

// The text is shown as an answer, thinking apart from it, and not as the tokens spell it.
bool shows_answer(const Settings& settings) {
  const bool is_plain = !settings.json && !settings.generate.show_draft && !settings.generate.show_tree;
  return is_plain && wants_chat(settings) && settings.request.skip_special;
}

// The prompt, the form that its output has to have, and how the output is read. `model` may be null for
// neither chat nor form.
Result<ChatSpec> spec_of(const Settings& settings, const Engine& engine, const ChatModel* model) {
  ChatSpec spec;
  if (wants_chat(settings)) {
    OUTRIDER_TRY(const auto messages, chat_messages(settings));
    OUTRIDER_TRY(spec, model->spec_of(messages, settings.request));
    if (!shows_answer(settings)) spec.request.skip_special = settings.request.skip_special;
  } else {
    spec.request = settings.request;
    OUTRIDER_TRY(spec.request.prompt, input_tokens(settings, engine));
    if (model != nullptr) spec.model = &model->served();
  }
  if (!settings.generate.prediction.empty()) {
    OUTRIDER_TRY(const std::string text, read_text_file(settings.generate.prediction));
    spec.request.prediction = engine.tokenize(text, /*add_special=*/false, /*parse_special=*/false);
  }
  if (model != nullptr) OUTRIDER_RETURN_IF_ERROR(set_form(settings.generate, spec));
  return spec;
}

void print_tree(const Engine& engine, const StepTrace& trace, bool colour) {
  write_output(tree_view(engine, trace, colour) + "\n");
  std::fflush(stdout);
}

}  // namespace

Status run_generate(const Settings& settings) {
  OUTRIDER_RETURN_IF_ERROR(check_one_input(settings, "--prompt, --prompt-file and --prompt-ids"));
  OUTRIDER_RETURN_IF_ERROR(check_views(settings));
  if (!settings.remote.url.empty()) return run_remote_generate(settings);
  if (settings.remote.private_text || !settings.remote.private_file.empty())
    return usage_error("expected --private with --server, which must not see it; found it without");
  OUTRIDER_TRY(Names names, names_of(settings, Unasked::kAuto));
  OUTRIDER_TRY(OpenedFiles files, open_files(std::move(names)));
  OUTRIDER_TRY(std::unique_ptr<EngineParts> parts, open_parts(files));
  const std::unique_ptr<Engine> engine = Engine::assemble(std::move(parts));
  OUTRIDER_TRY(const std::optional<OtherVocabulary> vocabulary, other_vocabulary(files));
  if (vocabulary) write_error_line(vocabulary->text());
  std::unique_ptr<ChatModel> model;  // of chats and forms, which it has to outlive
  if (wants_chat(settings) || settings.generate.wants_form()) {
    OUTRIDER_TRY(model, ChatModel::create(settings, *engine));
  }
  OUTRIDER_TRY(const ChatSpec spec, spec_of(settings, *engine, model.get()));
  const Request& request = spec.request;

  const bool colour = output_takes_colour();
  MarkedStream marked(*engine, colour);
  std::optional<MessageParser> answer;
  if (shows_answer(settings)) answer.emplace(spec);
  AnswerView view;
  const auto show = [&](RequestId, const Progress& progress) {
    if (settings.json || settings.generate.show_tree) return;
    if (answer)
      return view.show(answer->push(progress.text, progress.tokens, progress.completion != nullptr));
    write_output(settings.generate.show_draft ? marked.push(progress) : std::string(progress.text));
    std::fflush(stdout);
  };
  TraceLog log(*engine, settings);
  log.begin_run("prompt");
  const bool keeps_log = !settings.trace_file.empty() || (settings.generate.show_tree && settings.json);
  if (keeps_log || settings.generate.show_tree) {
    engine->set_trace_sink([&](const StepTrace& trace) {
      if (keeps_log) log.add(trace);
      if (settings.generate.show_tree && !settings.json) print_tree(*engine, trace, colour);
    });
  }
  OUTRIDER_TRY(const TimedCompletion timed, generate_timed(*engine, request, show));
  if (settings.json) {
    auto json = completion_json(engine->info(), request.prompt, timed);
    if (!settings.generate.prediction.empty()) add_prediction(timed.completion, json);
    json["speculation"]["foreseen_drafts"] = engine->status().foreseen_drafts;
    json["drafters"] = drafters_json(drafter_lines(files.search));
    json["vocabularies"] =
        vocabularies_json(vocabulary, vocabulary ? vocabulary->share_of_text(timed.completion.tokens) : 1.0);
    if (settings.generate.show_tree) json["trace"] = log.json();
    write_output(json_line(json));
  } else if (settings.generate.show_draft || settings.generate.show_tree) {
    write_output(settings.generate.show_draft ? marked.finish() + "\n\n" + mark_legend(colour) + "\n"
                                              : timed.completion.text + "\n\n" + tree_legend() + "\n");
    write_output(statistics_line(timed.completion, timed.tokens_per_second()) + "\n");
  } else {
    view.finish();
    write_output("\n");
    std::fflush(stdout);
    if (answer) write_error_text(ending_text(timed.completion, request.max_tokens, "--ctx holds more"));
  }
  return settings.trace_file.empty() ? Status() : write_trace_html(settings.trace_file, log.json());
}

}  // namespace outrider
