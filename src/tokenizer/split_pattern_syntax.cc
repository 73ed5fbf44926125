// SPDX-License-Identifier: Apache-2.0
// Translates the regular expressions of tokenizer.json, which are written for Oniguruma, to PCRE2.
#include <cctype>
#include <cstring>

#include "base/quote.h"
#include "tokenizer/split_pattern.h"
#include "tokenizer/unicode_additions.h"

namespace outrider {
namespace {

constexpr size_t kMaxPatternBytes = 64 * 1024;

// Unicode White_Space; PCRE2's own \s has U+180E as well, which lost the property in Unicode 6.3.
constexpr std::string_view kSpaces =
    "\\t-\\r\\x20\\x{85}\\x{A0}\\x{1680}\\x{2000}-\\x{200A}\\x{2028}\\x{2029}\\x{202F}\\x{205F}\\x{3000}";
// All characters that are not White_Space, for a \S within a set.
constexpr std::string_view kNonSpaces =
    "\\x00-\\x08\\x0E-\\x1F!-\\x{84}\\x{86}-\\x{9F}\\x{A1}-\\x{167F}\\x{1681}-\\x{1FFF}\\x{200B}-\\x{2027}"
    "\\x{202A}-\\x{202E}\\x{2030}-\\x{205E}\\x{2060}-\\x{2FFF}\\x{3001}-\\x{10FFFF}";
// PCRE2 10.42 leaves marks and connectors other than "_" out of \w.
constexpr std::string_view kWordCharacters = "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{24B6}-\\x{24E9}";

class Translator {
 public:
  explicit Translator(std::string_view pattern) : rest_(pattern) {}

  Result<std::string> run() {
    while (!rest_.empty()) OUTRIDER_RETURN_IF_ERROR(in_set_ ? translate_in_set() : translate_outside());
    if (in_set_) return input_error("a set [...] is not closed");
    return std::move(out_);
  }

 private:
  static Error unsupported(std::string_view what) {
    return input_error(std::string(what) + " is not supported in split patterns");
  }

  bool take(std::string_view prefix) {
    if (!rest_.starts_with(prefix)) return false;
    rest_.remove_prefix(prefix.size());
    return true;
  }

  void copy(size_t count) {
    out_.append(rest_.substr(0, count));
    rest_.remove_prefix(count);
  }

  Status translate_outside() {
    switch (rest_[0]) {
      case '\\':
        return translate_escape();
      case '[':
        copy(1);
        in_set_ = true;
        if (rest_.starts_with('^')) copy(1);
        if (rest_.starts_with(']')) return unsupported("']' right after '['");
        return {};
      case '(':
        return translate_group();
      case '{':
        return translate_interval();
      default:
        copy(1);
        return {};
    }
  }

  Status translate_group() {
    if (rest_.starts_with("(*")) return unsupported("'(*'");
    if (!rest_.starts_with("(?")) {
      copy(1);
      return {};
    }
    for (const std::string_view opening : {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:", "(?-i:"}) {
      if (rest_.starts_with(opening)) {
        copy(opening.size());
        return {};
      }
    }
    return unsupported("the group " + quote(rest_.substr(0, 4)));
  }

  // Reads {n}, {n,}, {n,m} and Oniguruma's {,m}; any other brace is literal. A "+" after an interval repeats
  // it in Oniguruma but makes it possessive in PCRE2.
  Status translate_interval() {
    const size_t close = rest_.find('}');
    const std::string_view inside = close == std::string_view::npos ? "" : rest_.substr(1, close - 1);
    if (inside.empty() || inside == "," ||
        inside.find_first_not_of("0123456789,") != std::string_view::npos) {
      out_ += "\\{";
      rest_.remove_prefix(1);
      return {};
    }
    out_ += inside[0] == ',' ? "{0" : "{";
    out_.append(inside).push_back('}');
    rest_.remove_prefix(close + 1);
    if (rest_.starts_with('+')) return unsupported("'}+'");
    return {};
  }

  Status translate_in_set() {
    if (rest_.starts_with("[:")) {
      const size_t close = rest_.find(":]");
      if (close == std::string_view::npos) return unsupported("'[:' without ':]'");
      copy(close + 2);
      return {};
    }
    if (rest_[0] == '[') return unsupported("a set inside of a set");
    if (rest_.starts_with("&&")) return unsupported("'&&'");
    if (rest_[0] == '\\') return translate_escape();
    if (rest_[0] == ']') in_set_ = false;
    copy(1);
    return {};
  }

  Status translate_escape() {
    if (rest_.size() < 2) return input_error("the pattern ends in a backslash");
    const char name = rest_[1];
    if (std::isalnum(static_cast<unsigned char>(name)) == 0) {
      copy(2);
      return {};
    }
    if (name == 'x') return translate_hex();
    if (name == 'u') return translate_unicode();
    if (name == 'p' || name == 'P') return translate_property();
    if (std::strchr("dDrntfae", name) != nullptr || (!in_set_ && (name == 'A' || name == 'z'))) {
      copy(2);
      return {};
    }
    rest_.remove_prefix(2);
    if (name == 's') {
      append_set(kSpaces, false);
    } else if (name == 'S') {
      in_set_ ? append_set(kNonSpaces, false) : append_set(kSpaces, true);
    } else if (name == 'w') {
      append_set(kWordCharacters, false);
    } else if (name == 'W' && !in_set_) {
      append_set(kWordCharacters, true);
    } else if (name == 'b' && !in_set_) {
      append_word_border();
    } else if (name == 'v') {
      out_ += "\\x0B";
    } else {
      return unsupported(std::string("'\\") + name + "'");
    }
    return {};
  }

  void append_set(std::string_view members, bool negated) {
    if (in_set_) {
      out_.append(members);
    } else {
      out_.append(negated ? "[^" : "[").append(members).append("]");
    }
  }

  void append_word_border() {
    const std::string word = "[" + std::string(kWordCharacters) + "]";
    out_.append("(?:(?<=").append(word).append(")(?!").append(word).append(")|(?<!");
    out_.append(word).append(")(?=").append(word).append("))");
  }

  // Reads \x{H...} and, below 0x80, \xHH (which means a byte above it in Oniguruma).
  Status translate_hex() {
    const bool braced = rest_.size() > 2 && rest_[2] == '{';
    const size_t close = braced ? rest_.find('}') : 3;
    if (close == std::string_view::npos || close >= rest_.size()) return input_error("'\\x' is not complete");
    if (!braced && (rest_[2] < '0' || rest_[2] > '7')) return unsupported("'\\x' of a byte above 7F");
    copy(close + 1);
    return {};
  }

  Status translate_unicode() {
    constexpr size_t kEscapeBytes = 6;  // \uHHHH
    if (rest_.size() < kEscapeBytes) return input_error("'\\u' is not complete");
    out_.append("\\x{").append(rest_.substr(2, 4)).append("}");
    rest_.remove_prefix(kEscapeBytes);
    return {};
  }

  // Reads \p{X} and \P{X} and adds the characters that PCRE2 does not know yet, except for a \P{X} within a
  // set.
  Status translate_property() {
    const size_t close = rest_.find('}');
    if (rest_.size() < 3 || rest_[2] != '{' || close == std::string_view::npos) {
      return input_error("'\\p' is not followed by {...}");
    }
    const bool negated = rest_[1] == 'P';
    const std::string additions = unicode_additions(rest_.substr(3, close - 3));
    if (additions.empty() || (in_set_ && negated)) {
      copy(close + 1);
      return {};
    }
    append_set(std::string("\\p").append(rest_.substr(2, close - 1)).append(additions), negated);
    rest_.remove_prefix(close + 1);
    return {};
  }

  std::string_view rest_;
  std::string out_;
  bool in_set_ = false;
};

}  // namespace

Result<std::string> translate_to_pcre2(std::string_view pattern) {
  if (pattern.size() > kMaxPatternBytes) {
    return input_error("a split pattern has " + std::to_string(pattern.size()) + " bytes, at most " +
                       std::to_string(kMaxPatternBytes) + " are supported");
  }
  Result<std::string> translated = Translator(pattern).run();
  if (translated.ok()) return translated;
  return input_error("split pattern " + quote(pattern) + ": " + translated.error().message);
}

}  // namespace outrider
