// SPDX-License-Identifier: Apache-2.0
#include "cli/prompt_set.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/counter_rng.h"
#include "cli/prompt_text.h"
#include "cli/terminal.h"
#include "config/option_value.h"

namespace outrider {
namespace {

using Json = nlohmann::json;

std::vector<PromptRecord> built_in_prompts() {
  return {
      {"built-in-1",
       "story",
       {"Once upon a time, there was a little girl named Lily. She liked to play in the park"},
       false},
      {"built-in-2",
       "story",
       {"One day, a small rabbit found a big red ball near the river. The rabbit wanted to"},
       false},
      {"built-in-3",
       "prose",
       {"It was late in the evening when the carriage came at last to the gate of the old house, and"},
       false},
      {"built-in-4",
       "code",
       {"class Stack:\n    \"\"\"A last-in, first-out list.\"\"\"\n\n    def __init__(self):\n        "
        "self.items = []\n\n    def push(self, item):\n"},
       false},
      {"built-in-5", "code", {"Write a function to find the largest number in a list."}, true},
      {"built-in-6",
       "math",
       {"Tom has 12 apples. He gives 4 to Ann and buys 7 more. How many apples does Tom have now?"},
       true},
      {"built-in-7", "instruct", {"Explain the command `tar` and show how to use it."}, true},
      {"built-in-8", "chat", {"Hello! Do you like to read books?"}, true},
  };
}

std::string text_or_empty(const Json& object, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    const auto found = object.find(key);
    if (found == object.end()) continue;
    return found->is_string() ? found->get<std::string>() : found->dump();
  }
  return {};
}

std::optional<std::vector<std::string>> texts_of(const Json& value) {
  if (value.is_string()) return std::vector<std::string>{value.get<std::string>()};
  if (!value.is_array() || value.empty()) return std::nullopt;
  std::vector<std::string> texts;
  for (const Json& item : value) {
    if (!item.is_string()) return std::nullopt;
    texts.push_back(item.get<std::string>());
  }
  return texts;
}

// SPEED-Bench's published files have this in place of texts that its licences do not let it spread.
constexpr std::string_view kNoText =
    "FULL BENCHMARK DATA SHOULD BE FETCHED FROM THE SOURCE USING SPECDEC_BENCH";

// The role and the text of a message; nullopt: it has others.
std::optional<std::pair<std::string, std::string>> role_and_text(const Json& message) {
  const bool has_both = message.is_object() && message.contains("role") && message["role"].is_string() &&
                        message.contains("content") && message["content"].is_string();
  if (!has_both) return std::nullopt;
  return std::pair(message["role"].get<std::string>(), message["content"].get<std::string>());
}

// Sets the first turn and the later ones of the user.
void take_turns(std::vector<std::string> turns, PromptRecord& record) {
  record.later_turns.assign(turns.begin() + 1, turns.end());
  turns.resize(1);
  record.turns = std::move(turns);
}

// A conversation that ends with the user's message, or the user's messages. False: it is neither.
bool take_messages(const Json& messages, PromptRecord& record) {
  if (!messages.is_array()) return false;
  std::vector<std::string> roles, texts;
  for (const Json& message : messages) {
    const auto both = role_and_text(message);
    if (!both) return false;
    if (both->first == "system" && &message == &messages.front()) {
      record.system = both->second;
      continue;
    }
    roles.push_back(both->first);
    texts.push_back(both->second);
  }
  if (texts.empty()) return false;
  if (std::ranges::count(roles, "user") == std::ssize(roles)) {
    take_turns(std::move(texts), record);
    return true;
  }
  for (size_t i = 0; i < roles.size(); ++i) {
    if (roles[i] != (i % 2 == 0 ? "user" : "assistant")) return false;
  }
  record.turns = std::move(texts);
  return record.turns.size() % 2 == 1;
}

std::optional<PromptRecord> parse_record(const Json& object) {
  if (!object.is_object()) return std::nullopt;
  PromptRecord record;
  record.id = text_or_empty(object, {"id", "question_id"});
  record.category = text_or_empty(object, {"domain", "category"});
  record.is_chat = true;
  if (object.contains("prompt")) {
    record.turns = texts_of(object["prompt"]).value_or(std::vector<std::string>());
    record.is_chat = object["prompt"].is_array() || object.value("kind", Json("continue")) != "continue";
  } else if (object.contains("turns")) {
    auto turns = texts_of(object["turns"]);
    if (turns) take_turns(*std::move(turns), record);
  } else if (object.contains("messages")) {
    if (!take_messages(object["messages"], record)) return std::nullopt;
  } else if (object.contains("question")) {
    record.turns = texts_of(object["question"]).value_or(std::vector<std::string>());
  }
  if (record.turns.empty() || record.turns.back().empty()) return std::nullopt;
  return record;
}

// A text that the publisher of a file has left out is not a prompt.
bool lacks_text(const PromptRecord& record) {
  return std::ranges::count(record.turns, kNoText) + std::ranges::count(record.later_turns, kNoText) > 0;
}

std::vector<PromptRecord> thinned(std::vector<PromptRecord> prompts, int64_t limit) {
  const auto count = static_cast<int64_t>(prompts.size());
  if (limit == 0 || limit >= count) return prompts;
  std::vector<PromptRecord> kept;
  for (int64_t i = 0; i < limit; ++i)
    kept.push_back(std::move(prompts[static_cast<size_t>(i * count / limit)]));
  return kept;
}

// Counted from the end, odd turns are the user's.
Result<std::string> render_chat(const PromptRecord& prompt, const Engine& engine) {
  std::vector<std::pair<std::string, std::string>> messages;
  if (!prompt.system.empty()) messages.emplace_back("system", prompt.system);
  for (size_t i = 0; i < prompt.turns.size(); ++i) {
    const bool from_user = (prompt.turns.size() - i) % 2 == 1;
    messages.emplace_back(from_user ? "user" : "assistant", prompt.turns[i]);
  }
  return engine.apply_chat_template(messages);
}

Result<std::vector<TokenId>> tokenize(const PromptRecord& prompt, const Engine& engine, bool chat) {
  if (!prompt.is_chat || !chat) return engine.tokenize(prompt.turns.back());
  const auto text = render_chat(prompt, engine);
  if (!text.ok()) return input_error(fmt::format("prompt {}: {}", prompt.id, text.error().message));
  return engine.tokenize(*text, false);
}

bool has_chat_template(const Engine& engine) {
  const std::pair<std::string, std::string> message = {"user", "hello"};
  return engine.apply_chat_template({&message, 1}).ok();
}

class PromptPreparation {
 public:
  PromptPreparation(Engine& engine, Request request)
      : engine_(engine), request_(std::move(request)), has_template_(has_chat_template(engine)) {
    request_.speculation.enabled = false;
  }

  // Adds the prompt and one for each of its later turns.
  Status add(PromptRecord prompt) {
    const std::string id = prompt.id;
    const std::vector<std::string> later =
        has_template_ ? std::move(prompt.later_turns) : std::vector<std::string>();
    prompt.later_turns.clear();
    OUTRIDER_TRY(bool is_kept, add_turn(prompt));
    for (size_t i = 0; i < later.size() && is_kept; ++i) {
      request_.prompt = prepared_.tokens.back();
      OUTRIDER_TRY(const Completion answer, engine_.generate(request_));
      prompt.turns.push_back(answer.text);
      prompt.turns.push_back(later[i]);
      prompt.id = fmt::format("{}/{}", id, i + 2);
      OUTRIDER_TRY(is_kept, add_turn(prompt));
    }
    return {};
  }

  Result<PreparedPrompts> finish(bool skips_long) {
    if (prepared_.skipped == 0) return std::move(prepared_);
    const int64_t context = engine_.info().context;
    if (!skips_long || prepared_.records.empty()) {
      const std::string others =
          prepared_.skipped == 1 ? "" : fmt::format(", {} others are too long, too", prepared_.skipped - 1);
      return input_error(fmt::format("{} and the context holds {}{}; raise --ctx or leave them out{}",
                                     first_long_, context, others, skips_long ? "" : " with --skip-long"));
    }
    write_error_line(fmt::format("left out: {} of {} prompts, which do not fit into the context of {} tokens",
                                 prepared_.skipped, prepared_.skipped + std::ssize(prepared_.records),
                                 context));
    return std::move(prepared_);
  }

 private:
  // False: the prompt is too long, and later turns, which are longer, are not built.
  Result<bool> add_turn(const PromptRecord& prompt) {
    OUTRIDER_TRY(std::vector<TokenId> tokens, tokenize(prompt, engine_, has_template_));
    if (std::ssize(tokens) >= engine_.info().context) {
      if (++prepared_.skipped == 1)
        first_long_ = fmt::format("prompt {} has {} tokens", prompt.id, tokens.size());
      return false;
    }
    prepared_.records.push_back(prompt);
    prepared_.tokens.push_back(std::move(tokens));
    return true;
  }

  Engine& engine_;
  Request request_;
  bool has_template_;
  PreparedPrompts prepared_;
  std::string first_long_;
};

}  // namespace

Result<std::vector<PromptRecord>> parse_prompts(std::string_view text, std::string_view name) {
  std::vector<PromptRecord> prompts;
  int line_number = 0;
  for (std::string_view line : split(text, '\n')) {
    ++line_number;
    if (trimmed(line).empty()) continue;
    std::optional<PromptRecord> record = parse_record(Json::parse(line, nullptr, false));
    if (!record) {
      return input_error(fmt::format(
          "{}:{}: expected a JSON object with prompt, messages, turns or question, found something else",
          name, line_number));
    }
    if (lacks_text(*record)) {
      return input_error(
          fmt::format("{}:{}: expected a text, found SPEED-Bench's mark of a text to be fetched; prepare.py "
                      "of NeMo-Skills "
                      "(nemo_skills/dataset/speed-bench) writes the file with all texts",
                      name, line_number));
    }
    if (record->id.empty()) record->id = fmt::format("line-{}", line_number);
    if (record->category.empty()) record->category = "all";
    prompts.push_back(*std::move(record));
  }
  if (prompts.empty())
    return input_error(fmt::format("{}: expected prompts, one JSON object per line, found none", name));
  return prompts;
}

Result<std::vector<PromptRecord>> load_prompts(const Settings& settings) {
  if (settings.prompts.file.empty()) return thinned(built_in_prompts(), settings.prompts.limit);
  OUTRIDER_TRY(const std::string text, read_text_file(settings.prompts.file));
  OUTRIDER_TRY(std::vector<PromptRecord> prompts, parse_prompts(text, settings.prompts.file.string()));
  return thinned(std::move(prompts), settings.prompts.limit);
}

Result<PreparedPrompts> prepare_prompts(std::vector<PromptRecord> prompts, Engine& engine,
                                        const Settings& settings) {
  PromptPreparation preparation(engine, settings.request);
  ProgressBar progress("prompts", std::ssize(prompts));
  for (PromptRecord& prompt : prompts) {
    OUTRIDER_RETURN_IF_ERROR(preparation.add(std::move(prompt)));
    progress.advance();
  }
  return preparation.finish(settings.prompts.skips_long);
}

std::vector<std::vector<TokenId>> random_prompts(int64_t limit, int64_t vocab_size) {
  constexpr int64_t kPrompts = 4;
  constexpr size_t kLength = 128;
  std::vector<std::vector<TokenId>> prompts(static_cast<size_t>(limit == 0 ? kPrompts : limit));
  uint64_t drawn = 0;
  for (auto& prompt : prompts) {
    prompt.resize(kLength);
    for (TokenId& token : prompt) {
      token = static_cast<TokenId>(mix64(drawn++) % static_cast<uint64_t>(vocab_size));
    }
  }
  return prompts;
}

}  // namespace outrider
