// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sys/resource.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/log.h"
#include "cli/commands/commands.h"
#include "cli/prompt_text.h"
#include "cli/terminal.h"
#include "config/environment.h"
#include "open/drafter_report.h"
#include "open/parts.h"
#include "server/api/api_limits.h"
#include "server/api/requests/template_values.h"
#include "server/page/chat_html.h"
#include "server/server.h"

namespace outrider {
namespace {

std::string model_name(const Settings& settings, const std::filesystem::path& model) {
  if (!settings.server.model_name.empty()) return settings.server.model_name;
  if (!settings.model_name.empty()) return settings.model_name;
  const std::filesystem::path path = model.lexically_normal();
  const std::filesystem::path last = path.has_filename() ? path.filename() : path.parent_path().filename();
  return last.extension() == ".gguf" ? last.stem().string() : last.string();
}

// Every connection needs a file descriptor, and the usual limit is 1024.
void raise_file_limit() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

// The sampling parameters that were set by an option, a file or the environment.
SamplingChoices sampling_choices(const Settings& settings) {
  const SamplingParams& asked = settings.request.sampling;
  const auto given = [&](std::string_view name) { return settings.origins.contains(name); };
  SamplingChoices choices;
  if (given("temperature")) choices.temperature = asked.temperature;
  if (given("top-p")) choices.top_p = asked.top_p;
  if (given("top-k")) choices.top_k = asked.top_k;
  if (given("min-p")) choices.min_p = asked.min_p;
  if (given("repetition-penalty")) choices.repetition_penalty = asked.repetition_penalty;
  return choices;
}

Result<TemplateValues> template_values(const std::string& json) {
  if (json.empty()) return TemplateValues();
  const auto fail = [](const ApiError& error) {
    return usage_error("--chat-template-kwargs: " + error.message);
  };
  const auto body = RequestBody::parse(json, ApiLimits().json_depth);
  if (!body.ok()) return fail(body.error());
  auto values = read_template_values(body->root());
  return values.ok() ? Result<TemplateValues>(std::move(values).value()) : fail(values.error());
}

Status read_template_options(const ServerOptions& options, ServerParts& parts) {
  if (!options.chat_template.empty()) {
    OUTRIDER_TRY(const std::string source, read_text_file(options.chat_template));
    OUTRIDER_TRY(parts.chat_template, ChatTemplate::parse(source));
  }
  OUTRIDER_TRY(parts.template_values, template_values(options.chat_template_kwargs));
  return {};
}

// Says which drafters failed, and what other tokens of a draft model mean for it.
Status log_drafter(const OpenedFiles& files) {
  for (const LeftOutDrafter& drafter : files.search.tried)
    log_warning(
        fmt::format("{} ({}) was tried and given up: {}", drafter.name, drafter.place, drafter.reason));
  OUTRIDER_TRY(const std::optional<OtherVocabulary> vocabulary, other_vocabulary(files));
  if (vocabulary) log_warning(vocabulary->text());
  return {};
}

}  // namespace

Status run_serve(const Settings& settings) {
  OUTRIDER_TRY(Names names, names_of(settings, Unasked::kAuto));
  names.options.calibrate = true;  // requests may ask for policy auto, and /metrics tells the speed-up
  raise_file_limit();
  ServerParts parts;
  parts.options = settings.server;
  const auto stage = std::make_shared<std::atomic<LoadStage>>(LoadStage::kFiles);
  parts.load_stage = stage;
  const auto note = std::make_shared<std::string>();
  parts.ready_note = note;
  parts.open = [names, stage, note]() -> Result<std::unique_ptr<Engine>> {
    OUTRIDER_TRY(OpenedFiles files, open_files(names));
    OUTRIDER_TRY(std::unique_ptr<EngineParts> opened,
                 open_parts(files, [stage](LoadStage now) { stage->store(now); }));
    OUTRIDER_RETURN_IF_ERROR(log_drafter(files));
    *note = search_summary(files);
    return Engine::assemble(std::move(opened));
  };
  parts.model_name = model_name(settings, names.options.model);
  parts.max_batch = names.options.max_batch;
  parts.sampling = settings.request.sampling;
  parts.sampling_choices = sampling_choices(settings);
  OUTRIDER_RETURN_IF_ERROR(read_template_options(settings.server, parts));
  parts.chat_html = chat_html;
  parts.notify_socket = notify_socket();
  OUTRIDER_TRY(const std::unique_ptr<Server> server, Server::listen(std::move(parts)));
  server->handle_signals();
  write_output(fmt::format("listening on {}\n", server->url()));
  std::fflush(stdout);
  return server->run();
}

}  // namespace outrider
