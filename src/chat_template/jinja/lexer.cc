// SPDX-License-Identifier: Apache-2.0
#include "chat_template/jinja/lexer.h"

#include <algorithm>
#include <array>
#include <optional>

#include "chat_template/jinja/string_literal.h"
#include "chat_template/jinja/text.h"

namespace outrider::jinja {

namespace {

constexpr size_t kDelimiter = 2;  // bytes of {{ {% {# and their ends

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool starts_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}
bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

// Makes every line break \n and drops one at the very end.
std::string normalize_newlines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out += source[i];
      continue;
    }
    out += '\n';
    if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

class Lexer {
 public:
  explicit Lexer(std::string source) : source_(std::move(source)) {}

  Result<std::vector<Token>> run() {
    while (at_ < source_.size()) OUTRIDER_RETURN_IF_ERROR(lex_text());
    emit(TokenKind::kEnd, "");
    return std::move(tokens_);
  }

 private:
  std::string_view rest() const { return std::string_view(source_).substr(at_); }
  char peek(size_t offset = 0) const { return at_ + offset < source_.size() ? source_[at_ + offset] : '\0'; }
  void emit(TokenKind kind, std::string text) { tokens_.push_back({kind, line_, std::move(text)}); }
  Error fail(std::string message) const { return at_line(line_, input_error(std::move(message))); }

  void advance(size_t bytes) {
    line_ += static_cast<int>(std::count(source_.begin() + at_, source_.begin() + at_ + bytes, '\n'));
    at_ += bytes;
  }
  void skip_whitespace() { advance(rest().size() - strip(rest(), StripSide::kLeft).size()); }

  Status lex_text();
  void emit_text(size_t end, char sign, bool is_block);
  void close_block(size_t sign_bytes);
  Status skip_comment();
  std::optional<size_t> match_raw_tag(std::string_view name) const;
  Status lex_raw(size_t tag_bytes);
  Status lex_inside(bool is_output);
  bool lex_end(bool is_output);
  Status lex_token();
  void lex_number();
  Status lex_string();
  Status lex_operator();

  std::string source_;
  size_t at_ = 0;
  int line_ = 1;
  std::vector<Token> tokens_;
  std::string brackets_;  // the closing brackets still expected, innermost last
};

// Emits the text up to `end`, the place of a delimiter with `sign`, and moves there.
void Lexer::emit_text(size_t end, char sign, bool is_block) {
  std::string_view text = std::string_view(source_).substr(at_, end - at_);
  if (sign == '-') {
    text = strip(text, StripSide::kRight);
  } else if (sign != '+' && is_block) {
    const size_t newline = text.rfind('\n');
    const bool line_starts_here = at_ == 0 || source_[at_ - 1] == '\n';
    const size_t line_start = newline == std::string_view::npos ? 0 : newline + 1;
    const bool only_whitespace = strip(text.substr(line_start), StripSide::kBoth).empty();
    if (only_whitespace && (line_start > 0 || line_starts_here)) text = text.substr(0, line_start);
  }
  if (!text.empty()) emit(TokenKind::kText, std::string(text));
  advance(end - at_);
}

// Moves past the end of a tag or comment. Its delimiter follows `sign_bytes` bytes of sign.
void Lexer::close_block(size_t sign_bytes) {
  const char sign = sign_bytes > 0 ? peek() : '\0';
  advance(sign_bytes + kDelimiter);
  if (sign == '-') skip_whitespace();
  if (sign == '\0' && peek() == '\n') advance(1);
}

Status Lexer::lex_text() {
  size_t begin = at_;
  while (true) {
    begin = source_.find('{', begin);
    if (begin == std::string::npos || begin + 1 >= source_.size()) {
      emit_text(source_.size(), '+', false);
      return {};
    }
    const char second = source_[begin + 1];
    if (second == '{' || second == '%' || second == '#') break;
    ++begin;
  }
  const char kind = source_[begin + 1];
  const char sign = begin + kDelimiter < source_.size() ? source_[begin + kDelimiter] : '\0';
  emit_text(begin, sign, kind != '{');
  if (kind == '#') return skip_comment();
  if (kind == '%') {
    if (const auto tag_bytes = match_raw_tag("raw")) return lex_raw(*tag_bytes);
  }
  emit(kind == '{' ? TokenKind::kOutputBegin : TokenKind::kTagBegin, "");
  advance(kDelimiter + (sign == '-' || sign == '+' ? 1 : 0));
  return lex_inside(kind == '{');
}

Status Lexer::skip_comment() {
  const size_t end = source_.find("#}", at_ + kDelimiter);
  if (end == std::string::npos)
    return fail("expected '#}' at the end of a comment, found the end of the template");
  const char before = source_[end - 1];
  const size_t sign_bytes = end > at_ + kDelimiter && (before == '-' || before == '+') ? 1 : 0;
  advance(end - sign_bytes - at_);
  close_block(sign_bytes);
  return {};
}

// The bytes of "{% name" and the whitespace after it where this tag comes next.
std::optional<size_t> Lexer::match_raw_tag(std::string_view name) const {
  size_t end = at_ + kDelimiter;
  if (end < source_.size() && (source_[end] == '-' || source_[end] == '+')) ++end;
  while (end < source_.size() && is_space(source_[end])) ++end;
  if (std::string_view(source_).substr(end, name.size()) != name) return std::nullopt;
  end += name.size();
  while (end < source_.size() && is_space(source_[end])) ++end;
  const std::string_view closing = std::string_view(source_).substr(end);
  if (!closing.starts_with("%}") && !closing.starts_with("-%}") && !closing.starts_with("+%}"))
    return std::nullopt;
  return end - at_;
}

Status Lexer::lex_raw(size_t tag_bytes) {
  const int line = line_;
  advance(tag_bytes);
  const bool strips = peek() == '-';
  advance((peek() == '%' ? 0 : 1) + kDelimiter);
  if (strips) skip_whitespace();
  for (size_t end = source_.find("{%", at_); end != std::string::npos; end = source_.find("{%", end + 1)) {
    const size_t begin = std::exchange(at_, end);
    const auto end_bytes = match_raw_tag("endraw");
    at_ = begin;
    if (!end_bytes) continue;
    emit_text(end, source_[end + kDelimiter], true);
    advance(*end_bytes);
    close_block(peek() == '%' ? 0 : 1);
    return {};
  }
  line_ = line;
  return fail("expected '{% endraw %}', found the end of the template");
}

bool Lexer::lex_end(bool is_output) {
  const std::string_view end = is_output ? "}}" : "%}";
  const size_t sign_bytes = peek() == '-' || (peek() == '+' && !is_output) ? 1 : 0;
  if (!brackets_.empty() || !rest().substr(std::min(sign_bytes, rest().size())).starts_with(end))
    return false;
  emit(is_output ? TokenKind::kOutputEnd : TokenKind::kTagEnd, "");
  if (!is_output) {
    close_block(sign_bytes);
    return true;
  }
  advance(sign_bytes + kDelimiter);
  if (sign_bytes > 0) skip_whitespace();
  return true;
}

Status Lexer::lex_inside(bool is_output) {
  const int line = line_;
  brackets_.clear();
  while (true) {
    skip_whitespace();
    if (at_ == source_.size()) {
      line_ = line;
      return fail(std::string("expected '") + (is_output ? "}}" : "%}") + "', found the end of the template");
    }
    if (lex_end(is_output)) return {};
    OUTRIDER_RETURN_IF_ERROR(lex_token());
  }
}

Status Lexer::lex_token() {
  const char c = peek();
  if (is_digit(c)) {
    lex_number();
    return {};
  }
  if (c == '\'' || c == '"') return lex_string();
  if (!starts_name(c)) return lex_operator();
  size_t size = 1;
  while (starts_name(peek(size)) || is_digit(peek(size))) ++size;
  emit(TokenKind::kName, std::string(rest().substr(0, size)));
  advance(size);
  return {};
}

// Drops underscores between digits, which are allowed. A number after a dot is an item: `pair.0.1`.
void Lexer::lex_number() {
  size_t size = 0;
  std::string digits;
  const auto take_digits = [&] {
    while (is_digit(peek(size)) || (peek(size) == '_' && is_digit(peek(size + 1)))) {
      if (peek(size) != '_') digits += peek(size);
      ++size;
    }
  };
  take_digits();
  bool is_float = false;
  const bool is_item = at_ > 0 && source_[at_ - 1] == '.';
  if (!is_item && peek(size) == '.' && is_digit(peek(size + 1))) {
    is_float = true;
    digits += '.';
    ++size;
    take_digits();
  }
  const size_t sign = peek(size + 1) == '+' || peek(size + 1) == '-' ? 1 : 0;
  if (!is_item && (peek(size) == 'e' || peek(size) == 'E') && is_digit(peek(size + 1 + sign))) {
    is_float = true;
    digits += std::string("e") + (peek(size + 1) == '-' ? "-" : "");
    size += 1 + sign;
    take_digits();
  }
  emit(is_float ? TokenKind::kFloat : TokenKind::kInteger, digits);
  advance(size);
}

Status Lexer::lex_string() {
  const char quote = peek();
  size_t size = 1;
  while (at_ + size < source_.size() && peek(size) != quote) size += peek(size) == '\\' ? 2 : 1;
  if (at_ + size >= source_.size())
    return fail("expected the end of a string, found the end of the template");
  Result<std::string> text = unescape_string(rest().substr(1, size - 1));
  if (!text.ok()) return at_line(line_, std::move(text).error());
  emit(TokenKind::kString, std::move(text).value());
  advance(size + 1);
  return {};
}

Status Lexer::lex_operator() {
  static constexpr std::array<std::string_view, 6> kLong = {"//", "**", "==", "!=", ">=", "<="};
  static constexpr std::string_view kOpening = "([{";
  static constexpr std::string_view kClosing = ")]}";
  size_t size = 1;
  for (std::string_view candidate : kLong) {
    if (rest().starts_with(candidate)) size = candidate.size();
  }
  const char c = peek();
  if (size == 1 && std::string_view("+-/*%~[](){}><=.:|,").find(c) == std::string_view::npos) {
    return fail("the character '" + std::string(1, is_space(c) || c < ' ' ? '?' : c) +
                "' is not part of the language");
  }
  if (const size_t place = kOpening.find(c); place != std::string_view::npos) brackets_ += kClosing[place];
  if (kClosing.find(c) != std::string_view::npos) {
    if (brackets_.empty() || brackets_.back() != c) {
      const std::string expected =
          brackets_.empty() ? "no closing bracket" : "'" + brackets_.substr(brackets_.size() - 1) + "'";
      return fail("expected " + expected + ", found '" + std::string(1, c) + "'");
    }
    brackets_.pop_back();
  }
  emit(TokenKind::kOperator, std::string(rest().substr(0, size)));
  advance(size);
  return {};
}

}  // namespace

Result<std::vector<Token>> tokenize(std::string_view source) {
  return Lexer(normalize_newlines(source)).run();
}

Error at_line(int line, Error error) {
  static constexpr std::string_view kPrefix = "chat template line ";
  if (!error.message.starts_with(kPrefix)) {
    error.message = std::string(kPrefix) + std::to_string(line) + ": " + error.message;
  }
  // Messages quote the template, which may hold line breaks.
  for (char& c : error.message) {
    if (c >= 0 && c < ' ') c = ' ';
  }
  return error;
}

}  // namespace outrider::jinja
