// SPDX-License-Identifier: Apache-2.0
#include "corpus/text_tokens.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_reader.h"
#include "corpus/ordered_work.h"

namespace outrider {
namespace {

// Pieces repeat most of their words, which are tokenized once; larger ones leave the processor's caches.
constexpr size_t kPieceBytes = size_t{1} << 20;

// A piece in tokens, with separators before its documents.
struct TokenPiece {
  std::vector<TokenId> ids;
  int64_t documents = 0;
  int64_t bytes = 0;
};

class PieceEncoder {
 public:
  explicit PieceEncoder(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}

  Result<TokenPiece> encode(const TextPiece& piece) const {
    TokenPiece tokens;
    tokens.bytes = static_cast<int64_t>(piece.text.size());
    if (!has_json_lines(*piece.source)) {
      if (piece.begins_document) begin_document(tokens);
      add(piece.text, tokens);
      return tokens;
    }
    int64_t line = piece.first_line;
    for (std::string_view rest = piece.text; !rest.empty(); ++line) {
      const std::string_view one = rest.substr(0, rest.find('\n'));
      rest.remove_prefix(std::min(one.size() + 1, rest.size()));
      if (one.find_first_not_of(" \t\r") == std::string_view::npos) continue;
      if (const Status added = add_line(one, tokens); !added.ok()) {
        return Error{added.error().kind, "corpus: " + piece.source->path.string() + ":" +
                                             std::to_string(line) + ": " + added.error().message};
      }
    }
    return tokens;
  }

 private:
  void begin_document(TokenPiece& tokens) const {
    tokens.ids.push_back(tokenizer_.vocab_size());
    ++tokens.documents;
  }

  void add(std::string_view text, TokenPiece& tokens) const {
    const std::vector<TokenId> ids = tokenizer_.encode(text, {.add_special = false});
    tokens.ids.insert(tokens.ids.end(), ids.begin(), ids.end());
  }

  Status add_document(const JsonField& text, TokenPiece& tokens) const {
    OUTRIDER_TRY(const std::string_view document, text.string());
    begin_document(tokens);
    add(document, tokens);
    return {};
  }

  Status add_line(std::string_view line, TokenPiece& tokens) const {
    constexpr int kMaxDepth = 64;
    OUTRIDER_TRY(const JsonDocument json, JsonDocument::parse(line, kMaxDepth));
    const JsonField root = json.root();
    if (root.is_string()) return add_document(root, tokens);
    if (const auto text = root.find("text")) return add_document(*text, tokens);
    const auto messages = root.find("messages");
    if (!messages) return root.expected("a text, or an object with \"text\" or \"messages\"");
    return messages->each([&](const JsonField& message) -> Status {
      const auto content = message.find("content");
      return content && content->is_string() ? add_document(*content, tokens) : Status();
    });
  }

  const Tokenizer& tokenizer_;
};

// Appends ids in the width of the text.
class IdWriter {
 public:
  IdWriter(ScratchFile& file, TokenId separator) : file_(file), width_(TokenText::width_for(separator)) {}

  Status write(std::span<const TokenId> ids) {
    if (width_ != 2) return file_.append(chars_of_ids<TokenId>(ids));
    narrow_.assign(ids.begin(), ids.end());
    return file_.append(chars_of_ids<uint16_t>(narrow_));
  }

 private:
  template <typename Id>
  static std::string_view chars_of_ids(std::span<const Id> ids) {
    return {reinterpret_cast<const char*>(ids.data()), ids.size_bytes()};
  }

  ScratchFile& file_;
  int width_;
  std::vector<uint16_t> narrow_;
};

}  // namespace

Result<ScratchFile> tokenize_texts(const TextSources& sources, const Tokenizer& tokenizer,
                                   const std::filesystem::path& folder, int threads, CorpusFacts& facts,
                                   const std::function<void(int64_t)>& progress) {
  OUTRIDER_TRY(ScratchFile file, ScratchFile::create(folder));
  const TokenId separator = tokenizer.vocab_size();
  IdWriter writer(file, separator);
  OUTRIDER_RETURN_IF_ERROR(writer.write(std::vector<TokenId>(kTextPadding, separator)));
  TextReader reader(sources, kPieceBytes);
  const PieceEncoder encoder(tokenizer);
  OrderedWork work([&] { return reader.next(); },
                   [&](const TextPiece& piece) { return encoder.encode(piece); },
                   [&](const TokenPiece& piece) {
                     facts.documents += piece.documents;
                     facts.tokens += static_cast<int64_t>(piece.ids.size()) - piece.documents;
                     facts.text_bytes += piece.bytes;
                     progress(facts.text_bytes);
                     return writer.write(piece.ids);
                   });
  OUTRIDER_RETURN_IF_ERROR(work.run(threads));
  facts.files = static_cast<int64_t>(sources.files.size()) - reader.left_out();
  OUTRIDER_RETURN_IF_ERROR(writer.write(std::vector<TokenId>(1, separator)));
  return file;
}

}  // namespace outrider
