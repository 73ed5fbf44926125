// SPDX-License-Identifier: Apache-2.0
#include "training/head_data/responses.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>
#include <unordered_map>

#include "base/counter_rng.h"
#include "base/log.h"
#include "platform/durable_file.h"
#include "training/core/safetensors_file.h"
#include "training/head_data/generation_progress.h"
#include "training/head_data/open_writer.h"
#include "training/head_data/text_writer.h"

namespace outrider::training {
namespace {

namespace fs = std::filesystem;

constexpr size_t kPart = 256;           // answers per file
constexpr size_t kLongestPrompt = 768;  // tokens
constexpr size_t kTextPrompt = 64;      // tokens of a text without prompt that are its prompt

std::vector<TokenId> prompt_of(const Document& document) {
  const auto end = document.counted.end();
  auto first = std::find(document.counted.begin(), end, uint8_t{1});
  // The last response is generated anew; a text is continued from near its beginning.
  if (first != document.counted.begin() && first != end) {
    first = end - (std::find(document.counted.rbegin(), document.counted.rend(), uint8_t{1}) -
                   document.counted.rbegin());
    while (first != document.counted.begin() && *(first - 1) == 1) --first;
  } else if (first == document.counted.begin()) {
    first += static_cast<int64_t>(std::min(kTextPrompt, document.tokens.size() / 2));
  }
  const auto length = static_cast<size_t>(first - document.counted.begin());
  const size_t kept = std::min(length, kLongestPrompt);
  const auto begin = document.tokens.begin() + static_cast<int64_t>(length - kept);
  return {begin, begin + static_cast<int64_t>(kept)};
}

// Draws options.regenerate prompts at random, as many of each source, and adds all questions.
std::vector<std::vector<TokenId>> pick_prompts(const std::vector<DocumentSource>& sources,
                                               const DocumentSource& questions, const HeadOptions& options) {
  std::vector<std::vector<TokenId>> prompts;
  for (size_t source = 0; source < sources.size(); ++source) {
    const auto& documents = sources[source].documents;
    std::vector<size_t> order(documents.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return mix64(options.seed ^ mix64(source << 32 | a)) < mix64(options.seed ^ mix64(source << 32 | b));
    });
    const auto wanted = static_cast<size_t>(options.regenerate) * (source + 1) / sources.size();
    for (size_t i = 0; i < order.size() && prompts.size() < wanted; ++i) {
      std::vector<TokenId> prompt = prompt_of(documents[order[i]]);
      if (!prompt.empty()) prompts.push_back(std::move(prompt));
    }
  }
  for (const Document& question : questions.documents) prompts.push_back(prompt_of(question));
  // Shuffled, so that every part of the run has prompts of all sources.
  std::vector<size_t> order(prompts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return mix64(options.seed + mix64(a)) < mix64(options.seed + mix64(b));
  });
  std::vector<std::vector<TokenId>> mixed;
  for (const size_t index : order) mixed.push_back(std::move(prompts[index]));
  return mixed;
}

at::Tensor int64_tensor(std::vector<int64_t> values) {
  return at::from_blob(values.data(), {static_cast<int64_t>(values.size())}, at::kLong).clone();
}

Status write_part(const fs::path& path, std::span<const Document> documents) {
  std::vector<int64_t> tokens, lengths, prompts;
  for (const Document& document : documents) {
    tokens.insert(tokens.end(), document.tokens.begin(), document.tokens.end());
    lengths.push_back(static_cast<int64_t>(document.tokens.size()));
    prompts.push_back(std::find(document.counted.begin(), document.counted.end(), uint8_t{1}) -
                      document.counted.begin());
  }
  return write_safetensors(path, {{"tokens", int64_tensor(std::move(tokens))},
                                  {"lengths", int64_tensor(std::move(lengths))},
                                  {"prompt_lengths", int64_tensor(std::move(prompts))}});
}

Result<std::vector<Document>> read_part(const fs::path& path, int64_t vocab_size) {
  OUTRIDER_TRY(const NamedTensors stored, read_safetensors(path));
  const std::unordered_map<std::string, at::Tensor> by_name(stored.begin(), stored.end());
  const auto bad = [&] { return input_error(path.string() + ": not a file of responses; remove it"); };
  for (const char* name : {"tokens", "lengths", "prompt_lengths"}) {
    if (!by_name.contains(name) || by_name.at(name).scalar_type() != at::kLong) return bad();
  }
  const at::Tensor &tokens = by_name.at("tokens"), &lengths = by_name.at("lengths"),
                   &prompts = by_name.at("prompt_lengths");
  if (lengths.numel() != prompts.numel()) return bad();
  std::vector<Document> documents;
  const int64_t* token = tokens.data_ptr<int64_t>();
  int64_t left = tokens.numel();
  for (int64_t i = 0; i < lengths.numel(); ++i) {
    const int64_t length = lengths.data_ptr<int64_t>()[i], prompt = prompts.data_ptr<int64_t>()[i];
    if (length < 0 || length > left || prompt < 0 || prompt > length) return bad();
    Document document;
    for (int64_t t = 0; t < length; ++t) {
      if (token[t] < 0 || token[t] >= vocab_size) return bad();
      document.tokens.push_back(static_cast<TokenId>(token[t]));
      document.counted.push_back(t >= prompt ? 1 : 0);
    }
    token += length;
    left -= length;
    documents.push_back(std::move(document));
  }
  return documents;
}

struct LessTokens {
  bool operator()(std::span<const TokenId> a, std::span<const TokenId> b) const {
    return std::ranges::lexicographical_compare(a, b);
  }
};

// Answers by prompt. A prompt may be asked several times; its answers are in the order of asking.
using Answers = std::map<std::vector<TokenId>, std::vector<Document>>;

std::vector<TokenId> prompt_part(const Document& answered) {
  const auto end = std::find(answered.counted.begin(), answered.counted.end(), uint8_t{1});
  return {answered.tokens.begin(), answered.tokens.begin() + (end - answered.counted.begin())};
}

// A prompt to answer; `turn` counts the earlier answers to an identical prompt.
struct Question {
  std::span<const TokenId> prompt;
  size_t turn = 0;
};

// The seed of an answer depends only on its question, whichever others are asked.
uint64_t draw_of(const Question& question, uint64_t seed) {
  uint64_t hash = mix64(seed ^ mix64(question.turn));
  for (const TokenId token : question.prompt) hash = mix64(hash ^ static_cast<uint64_t>(token));
  return hash;
}

// A folder of answers in numbered files. Another run may add files at any time.
class AnswerFolder {
 public:
  // Error: the folder holds answers of another target or with other options.
  static Result<AnswerFolder> claim(const fs::path& path, const HeadOptions& options,
                                    const std::string& target_fingerprint);

  Result<Answers> read(int64_t vocab_size) const;
  Status add(std::span<const Document> documents);

 private:
  explicit AnswerFolder(fs::path path) : path_(std::move(path)) {}
  fs::path part(size_t number) const {
    char name[48];
    std::snprintf(name, sizeof name, "part-%05zu.safetensors", number);
    return path_ / name;
  }

  fs::path path_;
  size_t next_ = 0;  // number of the next file
};

Result<AnswerFolder> AnswerFolder::claim(const fs::path& path, const HeadOptions& options,
                                         const std::string& target_fingerprint) {
  const nlohmann::json facts = {{"target", target_fingerprint},
                                {"response_tokens", options.response_tokens},
                                {"sampled_share", options.sampled_share},
                                {"temperature", options.temperature},
                                {"seed", options.seed}};
  OUTRIDER_RETURN_IF_ERROR(make_directories(path));
  const fs::path description = path / "description.json";
  AnswerFolder folder(path);
  std::ifstream in(description);
  if (!in) {
    OUTRIDER_RETURN_IF_ERROR(write_durably(description, facts.dump(1) + "\n"));
    return folder;
  }
  if (nlohmann::json::parse(in, nullptr, /*allow_exceptions=*/false) == facts) return folder;
  return usage_error(path.string() +
                     " holds responses of another target, or made with other options; remove it or name " +
                     "another folder with --responses");
}

Result<Answers> AnswerFolder::read(int64_t vocab_size) const {
  std::vector<fs::path> parts;
  std::error_code code;
  for (fs::directory_iterator entry(path_, code), end; !code && entry != end; entry.increment(code))
    if (entry->path().extension() == ".safetensors") parts.push_back(entry->path());
  if (code) return io_error(path_.string() + ": " + code.message());
  std::sort(parts.begin(), parts.end());
  Answers answers;
  for (const fs::path& path : parts) {
    OUTRIDER_TRY(std::vector<Document> documents, read_part(path, vocab_size));
    for (Document& document : documents) answers[prompt_part(document)].push_back(std::move(document));
  }
  return answers;
}

Status AnswerFolder::add(std::span<const Document> documents) {
  while (fs::exists(part(next_))) ++next_;
  return write_part(part(next_), documents);
}

// Answers all questions. The folder keeps the answers in the order of asking.
Result<std::vector<Document>> answer(TextWriter& writer, std::span<const Question> questions,
                                     const HeadOptions& options, AnswerFolder& folder,
                                     GenerationProgress& shown) {
  std::vector<WritingTask> tasks;
  for (const Question& question : questions) {
    const uint64_t seed = draw_of(question, options.seed);
    const bool is_sampled = random_uniform({.seed = seed}) < options.sampled_share;
    tasks.push_back({.prompt = question.prompt,
                     .max_tokens = options.response_tokens,
                     .temperature = is_sampled ? options.temperature : 0.0,
                     .seed = seed});
  }
  std::vector<Document> documents(questions.size());
  size_t kept = 0, done = 0;  // leading answers that are in the folder, and that are complete
  Status stored;
  const auto keep = [&](size_t least) {
    while (done < documents.size() && !documents[done].tokens.empty()) ++done;
    if (!stored.ok() || done - kept < least) return;
    stored = folder.add(std::span(documents).subspan(kept, done - kept));
    kept = done;
  };
  const auto sink = [&](size_t i, std::vector<TokenId> text) {
    Document& document = documents[i];
    document.tokens.assign(questions[i].prompt.begin(), questions[i].prompt.end());
    document.counted.assign(document.tokens.size(), 0);
    document.tokens.insert(document.tokens.end(), text.begin(), text.end());
    document.counted.resize(document.tokens.size(), 1);
    keep(kPart);
  };
  OUTRIDER_RETURN_IF_ERROR(writer.write(tasks, sink, shown));
  keep(1);
  OUTRIDER_RETURN_IF_ERROR(stored);
  return documents;
}

// The prompts that have no answer yet.
std::vector<Question> unanswered(const std::vector<std::vector<TokenId>>& prompts, const Answers& answers) {
  std::map<std::span<const TokenId>, size_t, LessTokens> asked;
  std::vector<Question> questions;
  for (const std::vector<TokenId>& prompt : prompts) {
    const size_t turn = asked[prompt]++;
    const auto found = answers.find(prompt);
    if (found == answers.end() || found->second.size() <= turn) questions.push_back({prompt, turn});
  }
  return questions;
}

}  // namespace

fs::path response_folder(const HeadOptions& options) {
  return options.responses.empty() ? options.out / "responses" : options.responses;
}

Result<std::vector<DocumentSource>> regenerate_responses(const std::vector<DocumentSource>& sources,
                                                         const DocumentSource& questions,
                                                         const HeadOptions& options,
                                                         const FrozenTarget& target) {
  const std::vector<std::vector<TokenId>> prompts = pick_prompts(sources, questions, options);
  if (prompts.empty()) return input_error("--regenerate: prompts are expected in --data, found none");
  const fs::path path = response_folder(options);
  OUTRIDER_TRY(AnswerFolder folder, AnswerFolder::claim(path, options, target.fingerprint()));
  OUTRIDER_TRY(Answers answers, folder.read(target.config().vocab_size));
  const std::vector<Question> asked = unanswered(prompts, answers);
  if (asked.size() < prompts.size())
    log_info(std::to_string(prompts.size() - asked.size()) + " of " + std::to_string(prompts.size()) +
             " prompts have answers in " + path.string());
  GenerationProgress progress("answering prompts", std::ssize(prompts),
                              std::ssize(prompts) - std::ssize(asked));
  if (!asked.empty()) {
    OUTRIDER_TRY(const std::unique_ptr<TextWriter> writer, open_writer(options, target));
    OUTRIDER_TRY(std::vector<Document> documents, answer(*writer, asked, options, folder, progress));
    for (Document& document : documents) answers[prompt_part(document)].push_back(std::move(document));
  }
  DocumentSource answered{.name = "responses", .documents = {}};
  std::map<std::span<const TokenId>, size_t, LessTokens> given;
  for (const std::vector<TokenId>& prompt : prompts)
    answered.documents.push_back(answers.at(prompt)[given[prompt]++]);
  std::vector<DocumentSource> result;
  result.push_back(std::move(answered));
  return result;
}

}  // namespace outrider::training
