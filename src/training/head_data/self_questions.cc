// SPDX-License-Identifier: Apache-2.0
#include "training/head_data/self_questions.h"

#include <algorithm>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "base/counter_rng.h"
#include "base/log.h"
#include "base/white_space.h"
#include "chat_template/chat_template.h"
#include "outrider/engine.h"
#include "platform/durable_file.h"
#include "tokenizer/tokenizer.h"
#include "training/head_data/generation_progress.h"
#include "training/head_data/responses.h"

namespace outrider::training {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kLongestQuestion = 384;    // tokens; longer ones are dropped
constexpr size_t kShortestQuestion = 8;      // bytes
constexpr int64_t kQuestionsPerWrite = 512;  // questions between two writes of the file
constexpr float kTopP = 0.95f;  // at temperature 1: without the tail, which is noise in small models
constexpr uint64_t kSeedOfQuestions = 0x9e3779b97f4a7c15;

// The text that the chat template writes before the first message of a user.
Result<std::string> opening(const FrozenTarget& target) {
  const ModelFile& file = target.file();
  if (file.chat_template.empty())
    return input_error("--self-questions: a target with a chat template is expected, " + target.name() +
                       " has none");
  const std::string mark = "{{a question}}";
  OUTRIDER_TRY(const ChatTemplate chat, ChatTemplate::parse(file.chat_template));
  OUTRIDER_TRY(const std::string text, chat.render({.messages = {{.role = "user", .content = mark}},
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

// Writes questions with the serving engine. Question i is a function of the seed and i alone.
class QuestionWriter {
 public:
  static Result<QuestionWriter> open(const HeadOptions& options, const FrozenTarget& target) {
    QuestionWriter writer;
    OUTRIDER_TRY(const std::string before, opening(target));
    OUTRIDER_TRY(writer.tokenizer_, Tokenizer::create(target.file().tokenizer));
    writer.prompt_ = writer.tokenizer_->encode(before, {.add_special = false});
    writer.seed_ = options.seed;
    OUTRIDER_TRY(writer.engine_, Engine::open(answering_engine(options)));
    return writer;
  }

  // The questions [first, first + count); one that does not end, or says nothing, is an empty text.
  Result<std::vector<std::string>> write(int64_t first, int64_t count, GenerationProgress& shown) {
    std::vector<std::string> texts(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) {
      Request request{.prompt = prompt_, .max_tokens = kLongestQuestion};
      request.sampling.temperature = 1.0f;
      request.sampling.top_p = kTopP;
      request.sampling.seed = mix64(seed_ ^ mix64(kSeedOfQuestions + static_cast<uint64_t>(first + i)));
      std::string& text = texts[static_cast<size_t>(i)];
      const auto sink = [&shown, &text](RequestId, const outrider::Progress& progress) {
        shown.add(progress);
        text += progress.text;
        if (progress.completion != nullptr && progress.completion->finish_reason != FinishReason::kStop)
          text.clear();
      };
      OUTRIDER_TRY([[maybe_unused]] const RequestId id, engine_->submit(std::move(request), sink));
    }
    while (engine_->step()) {
    }
    for (std::string& text : texts) text = std::string(trimmed(text));
    return texts;
  }

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::unique_ptr<Engine> engine_;
  std::vector<TokenId> prompt_;
  uint64_t seed_ = 0;
};

// The lines of a file; none if there is no such file.
std::vector<std::string> lines_of(const fs::path& path) {
  std::vector<std::string> lines;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

}  // namespace

Result<DocumentSource> self_questions(const HeadOptions& options, const FrozenTarget& target) {
  const fs::path folder = response_folder(options), path = folder / "questions.jsonl";
  OUTRIDER_RETURN_IF_ERROR(make_directories(folder));
  std::vector<std::string> lines = lines_of(path);
  const auto first = std::ssize(lines);
  if (first < options.self_questions) {
    OUTRIDER_TRY(QuestionWriter writer, QuestionWriter::open(options, target));
    GenerationProgress progress("writing questions", options.self_questions, first);
    for (int64_t at = first; at < options.self_questions; at += kQuestionsPerWrite) {
      OUTRIDER_TRY(const std::vector<std::string> texts,
                   writer.write(at, std::min(kQuestionsPerWrite, options.self_questions - at), progress));
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
           " messages that the target wrote as a user are questions");
  return asked_documents("questions", questions, target.file());
}

}  // namespace outrider::training
