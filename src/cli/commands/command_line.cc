// SPDX-License-Identifier: Apache-2.0
#include "cli/commands/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <exception>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/commands/commands.h"
#include "cli/commands/shell_files.h"
#include "cli/commands/version.h"
#include "cli/first_use.h"
#include "cli/serving/unnamed_model.h"
#include "cli/terminal.h"
#include "config/arguments.h"
#include "config/environment.h"
#include "config/foreign/foreign_names.h"
#include "config/message_text.h"
#include "config/option_table.h"
#include "config/option_value.h"
#include "config/resolve_settings.h"
#include "open/model_names.h"
#include "open/rank_job.h"

namespace outrider {
namespace {

constexpr std::string_view kAbout =
    "Outrider: text from language models with speculative decoding that never changes the output.";
constexpr std::string_view kBriefFooter = "--help lists all options.";
constexpr std::string_view kFooter =
    "Options can also be set in the environment (OUTRIDER_MAX_TOKENS=64) or in a file (--config FILE);\n"
    "docs/reference/options.md lists all of them and the keys of --speculative.";

using CommandFunction = Status (*)(const Settings&);

constexpr std::pair<Command, CommandFunction> kFunctions[] = {
    {Command::kGenerate, run_generate},
    {Command::kChat, run_chat},
    {Command::kScore, run_score},
    {Command::kTokenize, run_tokenize},
    {Command::kInspect, run_inspect},
    {Command::kBench, run_bench},
    {Command::kBenchRows, run_bench_rows},
    {Command::kBenchPrompts, run_bench_prompts},
    {Command::kBenchBatch, run_bench_batch},
    {Command::kBenchDrafters, run_bench_drafters},
    {Command::kVerifyLossless, run_verify_lossless},
    {Command::kDoctor, run_doctor},
    {Command::kBatch, run_batch},
    {Command::kQuantize, run_quantize},
    {Command::kServe, run_serve},
    {Command::kPull, run_pull},
    {Command::kModels, run_models},
    {Command::kRemove, run_rm},
    {Command::kProcesses, run_ps},
};

std::string flag_name(const OptionRow& row) {
  if (row.positional) return std::string(row.name);
  const std::string short_form = row.short_name == 0 ? "" : fmt::format("-{},", row.short_name);
  return fmt::format("{}--{}", short_form, row.name);
}

std::string help_of(const OptionRow& row, const Settings& defaults) {
  const std::string text = row.text(defaults);
  return text.empty() ? std::string(row.help) : fmt::format("{} [{}]", row.help, text);
}

// "bench" of "bench rows".
std::string_view first_word(const CommandRow& command) {
  return command.name.substr(0, command.name.find(' '));
}

// The command with the same first word, if there is one, that has the option.
const CommandRow* relative_with(const CommandRow& command, std::string_view option) {
  for (const CommandRow& other : command_table()) {
    if (first_word(other) != first_word(command)) continue;
    for (const OptionRow& row : option_table()) {
      if (row.belongs_to(other.command) && row.name == option) return &other;
    }
  }
  return nullptr;
}

// The options of one command in CLI11. Their values stay text, which the option table converts.
class CommandParser {
 public:
  // is_brief: help shows the options that people use most.
  CommandParser(const CommandRow& command, bool is_brief, CLI::App& app) : command_(&command) {
    const size_t space = command.name.rfind(' ');  // "bench rows" is a command of the command "bench"
    CLI::App* parent = space == std::string_view::npos
                           ? &app
                           : app.get_subcommand(std::string(command.name.substr(0, space)));
    parser_ =
        parent->add_subcommand(std::string(command.name.substr(space + 1)), std::string(command.summary));
    parser_->allow_extras();
    parser_->footer(std::string(is_brief ? kBriefFooter : kFooter));
    const Settings defaults = default_settings(command.command);
    for (const OptionRow& row : option_table()) {
      if (row.belongs_to(command.command)) add(row, is_brief, defaults);
    }
  }

  bool chosen() const { return parser_->parsed() && parser_->get_subcommands().empty(); }

  Result<GivenOptions> given(const Arguments& arguments) const {
    GivenOptions given;
    given.command = command_->command;
    given.foreign = arguments.foreign;
    given.spelling = arguments.spelling;
    for (const auto& [row, option] : options_) {
      if (option->count() > 0) given.command_line.emplace(row->name, option->results());
    }
    OUTRIDER_RETURN_IF_ERROR(check_parent());
    OUTRIDER_RETURN_IF_ERROR(check_extras(parser_->remaining()));
    given.environment = read_environment();
    return given;
  }

 private:
  void add(const OptionRow& row, bool is_brief, const Settings& defaults) {
    CLI::Option* option = nullptr;
    if (row.type() == OptionType::kFlag) {
      option = parser_->add_flag(flag_name(row));
    } else {
      option = parser_->add_option(flag_name(row))->expected(1)->allow_extra_args(false);
      option->type_name(std::string(row.metavar));
    }
    option->description(help_of(row, defaults));
    // Options without a group are in no help.
    option->group(!is_brief ? std::string(row.group) : row.is_brief(command_->command) ? "Options" : "");
    option->multi_option_policy(row.type() == OptionType::kTextList ? CLI::MultiOptionPolicy::TakeAll
                                                                    : CLI::MultiOptionPolicy::TakeLast);
    options_.emplace_back(&row, option);
  }

  // Refuses options before the second word of a command: `outrider bench --limit 3 serve` would ignore the
  // limit.
  Status check_parent() const {
    const CLI::App* parent = parser_->get_parent();
    if (parent->get_parent() == nullptr) return {};
    std::vector<std::string> early = parent->remaining();
    for (const CLI::Option* option : parent->get_options()) {
      if (option->count() > 0) early.push_back(option->get_name());
    }
    if (early.empty()) return {};
    return usage_error(fmt::format("expected {} after '{} {}', found it before", quote(early.front()),
                                   parent->get_name(), parser_->get_name()));
  }

  Status check_extras(const std::vector<std::string>& extras) const {
    if (extras.empty()) return {};
    const std::string& extra = extras.front();
    if (!extra.starts_with('-') || extra == "-") {
      std::string taken;
      for (const auto& [row, option] : options_) {
        if (row->positional) taken += fmt::format("{}{}", taken.empty() ? "" : " ", row->metavar);
      }
      return usage_error(fmt::format("unexpected argument {}; at most {} is taken", quote(extra), taken));
    }
    std::vector<std::string> names;
    for (const auto& [row, option] : options_) {
      if (!row->positional) names.push_back(fmt::format("--{}", row->name));
    }
    const std::vector<std::string_view> views(names.begin(), names.end());
    const std::string name = extra.substr(0, extra.find('='));
    if (const CommandRow* other = relative_with(*command_, name.substr(std::min<size_t>(2, name.size()))))
      return misplaced(*other, name);
    return usage_error(fmt::format("unknown option {}{}", quote(name), suggestion(name, views)));
  }

  // An option of a command with the same first word.
  Error misplaced(const CommandRow& other, std::string_view name) const {
    if (!command_->chosen_by.empty())
      return usage_error(fmt::format("expected --{} or {}, found both", command_->chosen_by, name));
    if (!other.chosen_by.empty())
      return usage_error(
          fmt::format("{} goes with --{}; found no --{}", name, other.chosen_by, other.chosen_by));
    return usage_error(fmt::format("{} is an option of outrider {}", name, other.name));
  }

  const CommandRow* command_;
  CLI::App* parser_ = nullptr;
  std::vector<std::pair<const OptionRow*, CLI::Option*>> options_;
};

// The command that the first words name, as "bench rows"; nullptr: none.
const CommandRow* command_of(std::span<const std::string> words) {
  const CommandRow* found = nullptr;
  for (const CommandRow& row : command_table()) {
    const std::vector<std::string_view> names = split(row.name, ' ');
    const bool fits = names.size() <= words.size() && std::equal(names.begin(), names.end(), words.begin());
    if (fits && (found == nullptr || row.name.size() > found->name.size())) found = &row;
  }
  return found;
}

// Whether `word` is the option, with or without a value: "--batch=4" is "batch".
bool is_long_option(std::string_view word, std::string_view option) {
  if (!word.starts_with("--")) return false;
  std::string name(word.substr(2, word.find('=') - 2));
  std::ranges::replace(name, '_', '-');
  return name == option;
}

// The command whose second word an option among the words stands for; nullptr: none. An option that does no
// more than that is taken out.
const CommandRow* chosen_command(const CommandRow& command, std::vector<std::string>& words) {
  for (const CommandRow& row : command_table()) {
    if (row.chosen_by.empty() || first_word(row) != command.name) continue;
    const auto last = std::ranges::find(words, "--");
    const auto word = std::find_if(words.begin(), last, [&](const std::string& candidate) {
      return is_long_option(candidate, row.chosen_by);
    });
    if (word == last) continue;
    if (relative_with(row, row.chosen_by) == nullptr) words.erase(word);
    return &row;
  }
  return nullptr;
}

// The words of a command line in our own terms; the words of the command itself stay in front.
Result<Arguments> own_arguments(std::vector<std::string> words) {
  const CommandRow* command = command_of(words);
  if (command == nullptr) return Arguments{.own = words, .foreign = {}, .spelling = {}};
  const auto count = std::ranges::count(command->name, ' ') + 1;
  words.erase(words.begin(), words.begin() + count);
  if (const CommandRow* chosen = chosen_command(*command, words)) command = chosen;
  OUTRIDER_TRY(Arguments arguments, translate_arguments(command->command, words));
  const std::vector<std::string_view> names = split(command->name, ' ');
  arguments.own.insert(arguments.own.begin(), names.begin(), names.end());
  return arguments;
}

Status check_command(std::string_view name) {
  std::vector<std::string_view> names;
  for (const CommandRow& row : command_table()) {
    if (names.empty() || names.back() != first_word(row)) names.push_back(first_word(row));
  }
  if (std::find(names.begin(), names.end(), name) != names.end() || name.starts_with("-")) return {};
  return usage_error(
      fmt::format("unknown command {}{}; commands: {}", quote(name), suggestion(name, names), joined(names)));
}

// `help COMMAND` is the command's --help, and words of other programs stand for commands.
std::vector<std::string> usual_words(std::vector<std::string> words) {
  constexpr std::pair<std::string_view, std::string_view> kOtherWords[] = {
      {"run", "chat"}, {"show", "inspect"}, {"list", "models"}, {"ls", "models"}, {"run-batch", "batch"}};
  if (words.front() == "help") {
    words.erase(words.begin());
    words.emplace_back("--help");
  }
  for (const auto& [other, command] : kOtherWords) {
    if (words.front() == other) words.front() = command;
  }
  if (words.size() > 1 && words.front() == "bench") {  // commands of trtllm-bench
    if (words[1] == "throughput") words[1] = "batch";
    if (words[1] == "latency") words.erase(words.begin() + 1);
  }
  return words;
}

// The tables of options as files for docs/reference, shells and packages; not a command for users.
Status write_tables(std::string_view as) {
  constexpr std::pair<std::string_view, std::string (*)()> kForms[] = {
      {"", option_reference},  {"foreign", foreign_reference}, {"bash", bash_completion},
      {"zsh", zsh_completion}, {"fish", fish_completion},      {"man", manual_page}};
  const auto* const form =
      std::ranges::find(kForms, as, &std::pair<std::string_view, std::string (*)()>::first);
  if (form == std::end(kForms))
    return usage_error("expected foreign, bash, zsh, fish or man, found " + quote(as));
  write_output(form->second());
  return {};
}

Status run(int argc, const char* const* argv) {
  if (argc < 2) return usage_error("expected a command, found none; outrider --help lists them");
  const std::string_view first = argv[1];
  if (first == "options") return write_tables(argc > 2 ? argv[2] : "");
  const std::vector<std::string> words = usual_words({argv + 1, argv + argc});
  OUTRIDER_RETURN_IF_ERROR(check_command(words.front()));

  CLI::App app{std::string(kAbout), "outrider"};
  app.set_version_flag("-V,--version", std::function<std::string()>(version_text));
  app.footer("outrider COMMAND -h lists the options that people use most, and --help all of them.");
  app.require_subcommand(0, 1);
  std::vector<CommandParser> parsers;
  OUTRIDER_TRY(const Arguments arguments, own_arguments(words));
  const bool is_brief = std::ranges::find(arguments.own, "-h") != arguments.own.end();
  for (const CommandRow& command : command_table()) parsers.emplace_back(command, is_brief, app);
  try {
    app.parse(
        std::vector<std::string>(arguments.own.rbegin(), arguments.own.rend()));  // CLI11 reads from the back
  } catch (const CLI::Success& success) {                                         // --help and --version
    app.exit(success);
    return {};
  } catch (const CLI::ParseError& error) {
    return usage_error(single_line(error.what()));
  }
  const auto chosen = std::find_if(parsers.begin(), parsers.end(),
                                   [](const CommandParser& parser) { return parser.chosen(); });
  if (chosen == parsers.end()) return usage_error("expected a command; outrider --help lists them");
  OUTRIDER_TRY(const GivenOptions given, chosen->given(arguments));
  OUTRIDER_TRY(Settings settings, resolve_settings(given));
  OUTRIDER_TRY(RankJob job, RankJob::join(settings.engine));
  if (job.is_worker()) return job.serve();
  settings.engine.ranks = job.ranks();
  if (settings.command == Command::kServe) choose_served_models(settings, model_folders());
  const Status named = find_models(settings, first_use_of(settings.pull));
  for (const std::string& warning : settings.warnings) write_error_line("warning: " + warning);
  OUTRIDER_RETURN_IF_ERROR(named);
  const auto* const function =
      std::ranges::find(kFunctions, settings.command, &std::pair<Command, CommandFunction>::first);
  return function->second(settings);
}

Status run_guarded(int argc, const char* const* argv) {
  try {
    OUTRIDER_RETURN_IF_ERROR(run(argc, argv));
    return flush_output();
  } catch (const std::bad_alloc&) {
    return resource_error("out of memory; a smaller --ctx, --max-batch or --weights needs less");
  } catch (const std::exception& error) {
    return Error{ErrorKind::kInput, error.what()};
  }
}

}  // namespace

int run_command_line(int argc, const char* const* argv) {
  const Status status = run_guarded(argc, argv);
  if (status.ok()) return 0;
  write_error_line(single_line(status.error().message));
  return status.error().kind == ErrorKind::kUsage ? 2 : 1;
}

}  // namespace outrider
