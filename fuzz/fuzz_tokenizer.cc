// SPDX-License-Identifier: Apache-2.0
// tokenizer.json or vocab.json, a NUL, and a text that is merges.txt as well: whatever loads must encode and
// decode the text, in pieces and as a whole.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "tokenizer/tokenizer.h"

namespace {

constexpr size_t kMaxTextBytes = 256;  // patterns of the file may need their whole match limit at every place

void require(bool condition) {
  if (!condition) std::abort();
}

void use(outrider::Result<outrider::TokenizerSpec> spec, std::string_view text) {
  if (!spec.ok()) {
    require(spec.error().message.find('\n') == std::string::npos);
    return;
  }
  const auto tokenizer = outrider::Tokenizer::create(std::move(*spec));
  if (!tokenizer.ok()) return;
  for (const bool parse_special : {true, false}) {
    const auto tokens = (*tokenizer)->encode(text, {.parse_special = parse_special});
    outrider::StreamDecoder decoder(*tokenizer);
    for (const outrider::TokenId token : tokens) {
      require(token >= 0 && token < (*tokenizer)->vocab_size());
      decoder.push(token);
    }
    decoder.finish();
    static_cast<void>((*tokenizer)->decode(tokens));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const size_t end = input.find('\0');
  const std::string_view rest = end == std::string_view::npos ? "a <s> b" : input.substr(end + 1);
  const std::string_view file = input.substr(0, end);
  const std::string_view text = rest.substr(0, kMaxTextBytes);
  use(outrider::parse_tokenizer_json({.tokenizer = file, .config = ""}), text);
  use(outrider::parse_gpt2_files({.vocabulary = file, .merges = rest, .config = ""}), text);
  return 0;
}
