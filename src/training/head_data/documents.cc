// SPDX-License-Identifier: Apache-2.0
#include "training/head_data/documents.h"

#include <algorithm>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "chat_template/chat_template.h"
#include "tokenizer/tokenizer.h"
#include "training/core/token_data.h"

namespace outrider::training {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Tokenizes text with the target's tokenizer and chat template.
class Reader {
 public:
  static Result<Reader> open(const ModelFile& target) {
    Reader reader;
    OUTRIDER_TRY(reader.tokenizer_, Tokenizer::create(target.tokenizer));
    if (!target.chat_template.empty()) {
      OUTRIDER_TRY(reader.template_, ChatTemplate::parse(target.chat_template));
    }
    reader.bos_ = target.bos_token;
    reader.eos_ = target.eos_token;
    return reader;
  }

  bool has_template() const { return template_.has_value(); }

  std::vector<TokenId> encode(const std::string& text, bool add_special) const {
    return tokenizer_->encode(text, {.add_special = add_special});
  }

  Result<std::string> render(std::vector<ChatMessage> messages, bool asks) const {
    if (!template_) return input_error("conversations need a chat template, and the target has none");
    return template_->render({.messages = std::move(messages),
                              .add_generation_prompt = asks,
                              .bos_token = bos_,
                              .eos_token = eos_,
                              .tools_json = {},
                              .values = {}});
  }

  void append(const std::string& text, bool counts, Document& document) const {
    const bool is_first = document.tokens.empty() && !template_;
    const std::vector<TokenId> tokens = encode(text, is_first);
    document.tokens.insert(document.tokens.end(), tokens.begin(), tokens.end());
    document.counted.resize(document.tokens.size(), counts ? 1 : 0);
  }

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::optional<ChatTemplate> template_;
  std::string bos_, eos_;
};

std::vector<ChatMessage> messages_of(const json& list) {
  std::vector<ChatMessage> messages;
  for (const json& message : list)
    messages.push_back(
        {.role = message.at("role").get<std::string>(), .content = message.at("content").get<std::string>()});
  return messages;
}

// Renders the conversation with the chat template, turn by turn. A response is the text that the template
// adds to the prompt that asks for it, as in serving.
Result<Document> conversation(const std::vector<ChatMessage>& messages, const Reader& reader) {
  Document document;
  std::string done;
  for (size_t i = 0; i < messages.size(); ++i) {
    if (messages[i].role != "assistant") continue;
    const auto until = [&](size_t count) {
      return std::vector<ChatMessage>(messages.begin(), messages.begin() + static_cast<int64_t>(count));
    };
    OUTRIDER_TRY(const std::string asked, reader.render(until(i), true));
    OUTRIDER_TRY(const std::string answered, reader.render(until(i + 1), false));
    if (!asked.starts_with(done) || !answered.starts_with(asked)) {
      return input_error("the chat template does not render a conversation as what was said before and more");
    }
    reader.append(asked.substr(done.size()), false, document);
    reader.append(answered.substr(asked.size()), true, document);
    done = answered;
  }
  return document;
}

// The prompt as it is answered, without an answer; a plain text where there is no chat template.
Result<Document> asked(const std::string& prompt, const Reader& reader) {
  Document document;
  std::string text = prompt;
  if (reader.has_template()) {
    OUTRIDER_TRY(text, reader.render({{.role = "user", .content = prompt}}, true));
  }
  reader.append(text, false, document);
  return document;
}

Result<Document> document_of(const json& line, const Reader& reader) {
  if (line.contains("messages")) return conversation(messages_of(line.at("messages")), reader);
  Document document;
  if (line.contains("text")) {
    reader.append(line.at("text").get<std::string>(), true, document);
    return document;
  }
  const auto prompt = line.at("prompt").get<std::string>();
  if (!line.contains("response")) return asked(prompt, reader);
  const auto response = line.at("response").get<std::string>();
  if (reader.has_template()) return conversation({{"user", prompt}, {"assistant", response}}, reader);
  reader.append(prompt, false, document);
  reader.append(response, true, document);
  return document;
}

// Calls take(line) for every line. Errors name the file and the line.
Status for_each_line(const fs::path& path, const std::function<Status(const json&)>& take) {
  std::ifstream in(path);
  if (!in) return io_error("cannot read " + path.string());
  std::string text;
  for (int64_t number = 1; std::getline(in, text); ++number) {
    if (text.find_first_not_of(" \t\r") == std::string::npos) continue;
    const auto fail = [&](const std::string& what) {
      return input_error(path.string() + ":" + std::to_string(number) + ": " + what);
    };
    try {
      const Status status = take(json::parse(text));
      if (!status.ok()) return fail(status.error().message);
    } catch (const json::exception& error) {
      return fail(std::string("an object with \"messages\", \"text\" or \"prompt\" is expected: ") +
                  error.what());
    }
  }
  return {};
}

// The paragraphs of a text file, each a text.
Result<DocumentSource> read_paragraphs(const fs::path& path, const Reader& reader) {
  std::ifstream in(path);
  if (!in) return io_error("cannot read " + path.string());
  DocumentSource source{.name = path.stem().string(), .documents = {}};
  std::string paragraph;
  const auto finish = [&] {
    Document document;
    if (!paragraph.empty()) reader.append(std::exchange(paragraph, {}), true, document);
    if (!document.tokens.empty()) source.documents.push_back(std::move(document));
  };
  for (std::string line; std::getline(in, line);) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) {
      finish();
    } else {
      paragraph += paragraph.empty() ? line : "\n" + line;
    }
  }
  finish();
  return source;
}

// Reads the token files of a folder and cuts them at the document ends.
Result<std::vector<DocumentSource>> read_token_files(const fs::path& folder, const ModelFile& target) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".u16") files.push_back(entry.path());
  }
  if (files.empty()) {
    return input_error(folder.string() + ": no .u16 files; make them with tools/prepare_training_data.py");
  }
  std::sort(files.begin(), files.end());
  std::vector<DocumentSource> sources;
  for (const fs::path& file : files) {
    OUTRIDER_TRY(const auto tokens, read_token_file(file, static_cast<int>(target.config.vocab_size)));
    DocumentSource source{.name = file.stem().string(), .documents = {}};
    Document document;
    for (const uint16_t token : tokens) {
      document.tokens.push_back(token);
      const auto& stops = target.config.stop_tokens;
      if (std::find(stops.begin(), stops.end(), TokenId{token}) == stops.end()) continue;
      document.counted.assign(document.tokens.size(), 1);
      source.documents.push_back(std::exchange(document, {}));
    }
    document.counted.assign(document.tokens.size(), 1);
    if (!document.tokens.empty()) source.documents.push_back(std::move(document));
    sources.push_back(std::move(source));
  }
  return sources;
}

}  // namespace

Result<std::vector<DocumentSource>> read_documents(const fs::path& path, const ModelFile& target,
                                                   bool wants_prompts) {
  if (fs::is_directory(path)) {
    OUTRIDER_TRY(std::vector<DocumentSource> sources,
                 read_token_files(path / (wants_prompts ? "prompts" : "train"), target));
    if (!wants_prompts) return sources;
    for (DocumentSource& source : sources) {
      for (Document& document : source.documents) {  // without the end token, because the target answers
        document.tokens.pop_back();
        document.counted.assign(document.tokens.size(), 0);
      }
    }
    return sources;
  }
  OUTRIDER_TRY(const Reader reader, Reader::open(target));
  DocumentSource source{.name = path.stem().string(), .documents = {}};
  if (path.extension() == ".txt") {
    OUTRIDER_TRY(source, read_paragraphs(path, reader));
  } else {
    OUTRIDER_RETURN_IF_ERROR(for_each_line(path, [&](const json& line) -> Status {
      OUTRIDER_TRY(Document document, document_of(line, reader));
      if (!document.tokens.empty()) source.documents.push_back(std::move(document));
      return {};
    }));
  }
  std::vector<DocumentSource> sources;
  sources.push_back(std::move(source));
  return sources;
}

Result<DocumentSource> asked_documents(const std::string& name, const std::vector<std::string>& questions,
                                       const ModelFile& target) {
  OUTRIDER_TRY(const Reader reader, Reader::open(target));
  DocumentSource source{.name = name, .documents = {}};
  for (const std::string& question : questions) {
    OUTRIDER_TRY(Document document, asked(question, reader));
    source.documents.push_back(std::move(document));
  }
  return source;
}

Result<std::vector<std::vector<TokenId>>> read_prompts(const fs::path& path, const ModelFile& target,
                                                       int64_t limit) {
  OUTRIDER_TRY(const Reader reader, Reader::open(target));
  std::vector<std::vector<TokenId>> prompts;
  OUTRIDER_RETURN_IF_ERROR(for_each_line(path, [&](const json& line) -> Status {
    std::vector<ChatMessage> messages;
    if (line.contains("messages")) {
      messages = messages_of(line.at("messages"));
    } else if (line.contains("turns")) {  // Spec-Bench's, all of the user: the first is a prompt
      messages.push_back({.role = "user", .content = line.at("turns").at(0).get<std::string>()});
    } else if (line.at("prompt").is_array()) {
      for (const json& turn : line.at("prompt"))
        messages.push_back(
            {.role = messages.size() % 2 == 0 ? "user" : "assistant", .content = turn.get<std::string>()});
    } else {
      messages.push_back({.role = "user", .content = line.at("prompt").get<std::string>()});
    }
    if (messages.empty()) return input_error("a prompt is expected, found none");
    if (!reader.has_template() || line.value("kind", "") == "continue") {
      prompts.push_back(reader.encode(messages.back().content.value_or(""), true));
      return {};
    }
    OUTRIDER_TRY(const std::string text, reader.render(std::move(messages), true));
    prompts.push_back(reader.encode(text, false));
    return {};
  }));
  if (prompts.empty()) return input_error(path.string() + ": prompts are expected, found none");
  const auto count = static_cast<int64_t>(prompts.size());
  std::vector<std::vector<TokenId>> chosen;  // spread evenly over the file
  for (int64_t i = 0; i < std::min(limit, count); ++i)
    chosen.push_back(std::move(prompts[static_cast<size_t>(i * count / std::min(limit, count))]));
  return chosen;
}

}  // namespace outrider::training
