// SPDX-License-Identifier: Apache-2.0
#include "training/head_data/self_questions.h"

#include <algorithm>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/counter_rng.h"
#include "base/log.h"
#include "base/white_space.h"
#include "chat_template/chat_template.h"
#include "platform/durable_file.h"
#include "tokenizer/tokenizer.h"
#include "training/head_data/generation_progress.h"
#include "training/head_data/open_writer.h"
#include "training/head_data/responses.h"
#include "training/head_data/text_writer.h"

namespace outrider::training {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kLongestQuestion = 384;  // tokens; longer ones are dropped
constexpr size_t kShortestQuestion = 8;    // bytes
constexpr int64_t kBeginning = 32;         // tokens
constexpr double kTopP = 0.95;  // at temperature 1: without the tail, which is noise in small models
constexpr uint64_t kSeedOfQuestions = 0x9e3779b97f4a7c15;
constexpr std::string_view kPlace = "{}";  // where the text stands in the question

// The target is told this before it writes as a user, and this becomes of its text.
struct QuestionKind {
  std::string system = {};       // message of the system; empty: the chat template's own
  std::string question{kPlace};  // the text stands at kPlace
  int64_t max_tokens = kLongestQuestion;
  double temperature = 1.0;
  bool is_beginning = false;  // of a text, which a model without chat template goes on with

  // The question that the text makes; empty: none.
  std::string asked(std::string text, bool is_complete) const;
};

std::string QuestionKind::asked(std::string text, bool is_complete) const {
  if (is_beginning) return text;
  if (!is_complete) {
    // A question has to end; a text about which something is asked may be the beginning of a longer one.
    const size_t sentence = text.find_last_of(".!?");
    if (question == kPlace || sentence == std::string::npos) return {};
    text.resize(sentence + 1);
  }
  text = std::string(trimmed(text));
  if (text.size() < kShortestQuestion) return {};
  return std::string(question).replace(question.find(kPlace), kPlace.size(), text);
}

// Reads a .jsonl file of kinds. Errors name the line.
Result<std::vector<QuestionKind>> read_kinds(const fs::path& path) {
  std::vector<QuestionKind> kinds;
  std::ifstream in(path);
  if (!in) return io_error("cannot read " + path.string());
  int64_t number = 0;
  for (std::string text; std::getline(in, text);) {
    ++number;
    if (trimmed(text).empty()) continue;
    QuestionKind kind;
    try {
      const nlohmann::json line = nlohmann::json::parse(text);
      kind.system = line.value("system", kind.system);
      kind.question = line.value("question", kind.question);
      kind.max_tokens = line.value("max_tokens", kind.max_tokens);
      kind.temperature = line.value("temperature", kind.temperature);
    } catch (const nlohmann::json::exception& error) {
      return input_error(path.string() + ":" + std::to_string(number) + ": " + error.what());
    }
    if (kind.question.find(kPlace) == std::string::npos || kind.max_tokens <= 0 || kind.temperature < 0)
      return input_error(
          path.string() + ":" + std::to_string(number) +
          ": a \"question\" with {} in it, \"max_tokens\" above 0 and \"temperature\" of 0 or " +
          "more are expected");
    kinds.push_back(std::move(kind));
  }
  if (kinds.empty()) return input_error(path.string() + ": kinds of questions are expected, found none");
  return kinds;
}

// The tokens that begin a text: the tokenizer's own, or else the end of another text.
std::vector<TokenId> beginning(const FrozenTarget& target, const Tokenizer& tokenizer) {
  std::vector<TokenId> tokens = tokenizer.encode("", {.add_special = true});
  if (tokens.empty() && !target.config().stop_tokens.empty())
    tokens.push_back(target.config().stop_tokens.front());
  if (tokens.empty()) tokens.push_back(0);
  return tokens;
}

// The text that the chat template writes before the first message of a user.
Result<std::string> opening(const FrozenTarget& target, const std::string& system) {
  const ModelFile& file = target.file();
  const std::string mark = "{{a question}}";
  std::vector<ChatMessage> messages;
  if (!system.empty()) messages.push_back({.role = "system", .content = system});
  messages.push_back({.role = "user", .content = mark});
  OUTRIDER_TRY(const ChatTemplate chat, ChatTemplate::parse(file.chat_template));
  OUTRIDER_TRY(const std::string text, chat.render({.messages = std::move(messages),
                                                    .add_generation_prompt = true,
                                                    .bos_token = file.bos_token,
                                                    .eos_token = file.eos_token,
                                                    .tools_json = {},
                                                    .values = {}}));
  const size_t place = text.find(mark);
  if (place != std::string::npos) return text.substr(0, place);
  return input_error("--self-questions: the chat template of " + target.name() +
                     " does not write a user's message as it is");
}

// Writes questions with the target. Question i is a function of only the seed, the kinds and i.
class QuestionWriter {
 public:
  static Result<QuestionWriter> open(const HeadOptions& options, const FrozenTarget& target,
                                     std::vector<QuestionKind> kinds) {
    QuestionWriter writer;
    OUTRIDER_TRY(writer.tokenizer_, Tokenizer::create(target.file().tokenizer));
    if (target.file().chat_template.empty()) {
      kinds = {{.max_tokens = kBeginning, .is_beginning = true}};
      writer.prompts_.push_back(beginning(target, *writer.tokenizer_));
    }
    for (const QuestionKind& kind : kinds) {
      if (kind.is_beginning) continue;
      OUTRIDER_TRY(const std::string before, opening(target, kind.system));
      writer.prompts_.push_back(writer.tokenizer_->encode(before, {.add_special = false}));
    }
    writer.kinds_ = std::move(kinds);
    writer.stops_ = target.config().stop_tokens;
    writer.seed_ = options.seed;
    OUTRIDER_TRY(writer.writer_, open_writer(options, target));
    return writer;
  }

  int64_t preferred_questions() const { return writer_->preferred_tasks(); }
  // The questions [first, first + count); one that does not end, or says nothing, is an empty text.
  Result<std::vector<std::string>> write(int64_t first, int64_t count, GenerationProgress& shown) {
    std::vector<WritingTask> tasks;
    for (int64_t i = first; i < first + count; ++i) {
      const size_t kind = kind_of(i);
      tasks.push_back({.prompt = prompts_[kind],
                       .max_tokens = kinds_[kind].max_tokens,
                       .temperature = kinds_[kind].temperature,
                       .top_p = kTopP,
                       .seed = mix64(seed_ ^ mix64(kSeedOfQuestions + static_cast<uint64_t>(i)))});
    }
    std::vector<std::string> questions(tasks.size());
    const auto sink = [&](size_t i, const std::vector<TokenId>& text) {
      const bool is_complete = std::ranges::find(stops_, text.back()) != stops_.end();
      questions[i] = kinds_[kind_of(first + static_cast<int64_t>(i))].asked(
          tokenizer_->decode(text, /*skip_special=*/true), is_complete);
    };
    OUTRIDER_RETURN_IF_ERROR(writer_->write(tasks, sink, shown));
    return questions;
  }

 private:
  size_t kind_of(int64_t question) const { return static_cast<size_t>(question) % kinds_.size(); }

  std::shared_ptr<const Tokenizer> tokenizer_;
  std::unique_ptr<TextWriter> writer_;
  std::vector<QuestionKind> kinds_;
  std::vector<std::vector<TokenId>> prompts_;  // by kind
  std::vector<TokenId> stops_;
  uint64_t seed_ = 0;
};

// The lines of a file; none if there is no such file.
std::vector<std::string> lines_of(const fs::path& path) {
  std::vector<std::string> lines;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// The kinds of the questions in `folder`. Error: it holds questions of other kinds.
Result<std::vector<QuestionKind>> claim_kinds(const fs::path& folder, const fs::path& file) {
  std::vector<QuestionKind> kinds = {{}};
  if (!file.empty()) {
    OUTRIDER_TRY(kinds, read_kinds(file));
  }
  const fs::path copy = folder / "question_kinds.jsonl";
  const std::vector<std::string> lines = file.empty() ? std::vector<std::string>() : lines_of(file);
  if (lines_of(copy) == lines) return kinds;
  if (fs::exists(folder / "questions.jsonl"))
    return usage_error(folder.string() +
                       " holds questions of other kinds; name another folder with --responses");
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  OUTRIDER_RETURN_IF_ERROR(write_durably(copy, text));
  return kinds;
}

}  // namespace

Result<DocumentSource> self_questions(const HeadOptions& options, const FrozenTarget& target) {
  const fs::path folder = response_folder(options), path = folder / "questions.jsonl";
  OUTRIDER_RETURN_IF_ERROR(make_directories(folder));
  OUTRIDER_TRY(std::vector<QuestionKind> kinds, claim_kinds(folder, options.question_kinds));
  std::vector<std::string> lines = lines_of(path);
  const auto first = std::ssize(lines);
  if (first < options.self_questions) {
    OUTRIDER_TRY(QuestionWriter writer, QuestionWriter::open(options, target, std::move(kinds)));
    GenerationProgress progress("writing questions", options.self_questions, first);
    const int64_t part = writer.preferred_questions();  // questions between two writes of the file
    for (int64_t at = first; at < options.self_questions; at += part) {
      OUTRIDER_TRY(const std::vector<std::string> texts,
                   writer.write(at, std::min(part, options.self_questions - at), progress));
      for (const std::string& text : texts)
        lines.push_back(
            nlohmann::json{{"prompt", text}}.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
      std::string all;
      for (const std::string& line : lines) all += line + "\n";
      OUTRIDER_RETURN_IF_ERROR(write_durably(path, all));
    }
  }
  lines.resize(static_cast<size_t>(options.self_questions));
  std::vector<std::string> questions;
  for (const std::string& line : lines) {
    const nlohmann::json parsed = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!parsed.is_object() || !parsed.value("prompt", nlohmann::json()).is_string())
      return input_error(path.string() + ": not a file of questions; remove it");
    std::string question = parsed.at("prompt").get<std::string>();
    if (question.size() >= kShortestQuestion) questions.push_back(std::move(question));
  }
  log_info(std::to_string(questions.size()) + " of " + std::to_string(lines.size()) +
           " texts that the target wrote are prompts");
  return asked_documents("questions", questions, target.file());
}

}  // namespace outrider::training
