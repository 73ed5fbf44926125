// SPDX-License-Identifier: Apache-2.0
#include "cli/serving/one_model.h"

#include <fmt/format.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/log.h"
#include "cli/chat_model.h"
#include "cli/serving/unnamed_model.h"
#include "open/default_context.h"
#include "open/default_sampling.h"
#include "open/drafter_report.h"
#include "open/parts.h"

namespace outrider {
namespace {

std::string model_name(const Settings& settings, const std::filesystem::path& model) {
  if (!settings.server.model_names.empty()) return settings.server.model_names.front();
  if (!settings.model_name.empty()) return settings.model_name;
  const std::filesystem::path path = model.lexically_normal();
  const std::filesystem::path last = path.has_filename() ? path.filename() : path.parent_path().filename();
  return last.extension() == ".gguf" ? last.stem().string() : last.string();
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

// `unnamed`: see one_model_note().
std::string ready_note(const OpenedFiles& files, int64_t context, const std::string& unnamed) {
  std::string note;
  for (const std::string& part :
       {search_summary(files), context_note(context, files.target.config), unnamed}) {
    if (!part.empty()) note += (note.empty() ? "" : "; ") + part;
  }
  return note;
}

}  // namespace

Status add_model(const Settings& settings, ServerParts& parts) {
  OUTRIDER_TRY(Names names, names_of(settings, Unasked::kAuto));
  names.options.calibrate = true;  // requests may ask for policy auto, and /metrics tells the speed-up
  const auto stage = std::make_shared<std::atomic<LoadStage>>(LoadStage::kFiles);
  parts.load_stage = stage;
  const auto note = std::make_shared<std::string>();
  parts.ready_note = note;
  parts.open = [names, stage, note, unnamed = one_model_note(settings)]() -> Result<std::unique_ptr<Engine>> {
    OUTRIDER_TRY(OpenedFiles files, open_files(names));
    OUTRIDER_TRY(std::unique_ptr<EngineParts> opened,
                 open_parts(files, [stage](LoadStage now) { stage->store(now); }));
    OUTRIDER_RETURN_IF_ERROR(log_drafter(files));
    *note = ready_note(files, opened->options.context, unnamed);
    return Engine::assemble(std::move(opened));
  };
  parts.model_name = model_name(settings, names.options.model);
  if (!settings.server.model_names.empty())
    parts.model_aliases.assign(settings.server.model_names.begin() + 1, settings.server.model_names.end());
  parts.max_batch = names.options.max_batch;
  parts.sampling = settings.request.sampling;
  parts.sampling_choices = given_choices(settings);
  OUTRIDER_TRY(ChatInputs chat, read_chat_options(settings.chat));
  parts.chat_template = std::move(chat.chat_template);
  parts.template_values = std::move(chat.values);
  parts.thinking_budget = chat.thinking_budget;
  parts.thinking_message = settings.chat.thinking_message;
  return {};
}

}  // namespace outrider
