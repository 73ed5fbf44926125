// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "outrider/result.h"
#include "outrider/token.h"
#include "text/tokenizer_spec.h"

namespace outrider {

struct EncodeOptions {
  bool add_special = true;    // BOS / EOS as the tokenizer's own files say
  bool parse_special = true;  // "<|im_end|>" in the text is the special token; false: it is plain text
};

// Text <-> token ids, byte for byte as the model's own tokenizer does it. Immutable, shareable between threads.
class Tokenizer {
 public:
  // Checks the whole spec (unique pieces, ids in range, merges of known pieces, compilable patterns).
  static Result<std::shared_ptr<const Tokenizer>> create(TokenizerSpec spec);

  ~Tokenizer();

  // Any bytes may be given; what is not valid UTF-8 is encoded byte by byte where the vocabulary allows.
  std::vector<TokenId> encode(std::string_view text, const EncodeOptions& options = {}) const;

  // Text of a whole sequence. `skip_special` leaves control tokens out. Bytes that do not form UTF-8 stay as they
  // are: callers that need valid text use StreamDecoder. Ids outside the vocabulary give nothing.
  std::string decode(std::span<const TokenId> tokens, bool skip_special = true) const;

  // The bytes a token stands for inside a text (no space prefix stripped); empty for control tokens.
  std::string_view token_bytes(TokenId token) const;

  // The spelling in the file, for messages: "Ġthe", "<|eot_id|>".
  std::string_view token_piece(TokenId token) const;

  bool is_control(TokenId token) const;
  std::optional<TokenId> find_piece(std::string_view piece) const;
  int vocab_size() const;
  std::optional<TokenId> bos() const;
  std::optional<TokenId> eos() const;
  bool adds_bos() const;

 private:
  struct Impl;
  explicit Tokenizer(std::unique_ptr<Impl> impl);
  std::unique_ptr<const Impl> impl_;
};

// Reads tokenizer.json (and tokenizer_config.json beside it, when there) from a Hugging Face directory.
Result<TokenizerSpec> read_tokenizer_json(const std::filesystem::path& directory);

// Split patterns of a GGUF `tokenizer.ggml.pre` name; an error lists the names that are known.
Result<std::vector<std::string>> split_patterns_for(std::string_view pre_name);

// Turns tokens into text as they come, never splitting a UTF-8 character: what is incomplete waits for the next
// token. decode() of all tokens equals the concatenation of all push() and finish().
class StreamDecoder {
 public:
  explicit StreamDecoder(std::shared_ptr<const Tokenizer> tokenizer, bool skip_special = true);

  // Text that is now complete; empty while a character is unfinished.
  std::string push(TokenId token);
  // What is left; an unfinished character becomes U+FFFD.
  std::string finish();

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  bool skip_special_;
  bool at_start_ = true;
  std::string pending_;  // bytes of an unfinished character, at most 3
};

}  // namespace outrider
