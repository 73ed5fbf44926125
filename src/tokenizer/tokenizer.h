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
#include "tokenizer/tokenizer_spec.h"

namespace outrider {

struct EncodeOptions {
  bool add_special = true;    // add BOS and EOS as the tokenizer's files say
  bool parse_special = true;  // true: "<|im_end|>" in the text is the special token; false: it is plain text
  bool drop_marks = false;    // the text has parts that went through mark_input()
};

// Text <-> token ids, equal to the model's own tokenizer byte for byte. Immutable; threads may share it.
class Tokenizer {
 public:
  // Checks the whole spec (unique pieces, ids in range, merges of known pieces, compilable patterns). Pieces
  // must be distinct, valid UTF-8 and, but for unused ids, not empty; attributes and scores are by id, or
  // empty.
  static Result<std::shared_ptr<const Tokenizer>> create(TokenizerSpec spec);

  ~Tokenizer();

  // `text` may be any bytes, up to 2 GiB; bytes that are not valid UTF-8 are encoded one by one where the
  // vocabulary allows. A pattern that exceeds its match limit leaves the rest of its stretch of text unsplit.
  std::vector<TokenId> encode(std::string_view text, const EncodeOptions& options = {}) const;

  // Breaks the spellings of control tokens by marks, so that encode() with drop_marks takes them for text.
  std::string mark_input(std::string_view text) const;

  // The text of a whole sequence. `skip_special` leaves control tokens out. Bytes that do not form UTF-8 stay
  // as they are; callers that need valid text use StreamDecoder. Ids outside the vocabulary give no text.
  std::string decode(std::span<const TokenId> tokens, bool skip_special = true) const;

  // The bytes of a token within a text (with its space prefix); empty for control tokens.
  std::string_view token_bytes(TokenId token) const;

  // The spelling of a token in the file, for messages: "Ġthe", "<|eot_id|>".
  std::string_view token_piece(TokenId token) const;

  bool is_control(TokenId token) const;
  // The ids below vocab_size() that no token has.
  const std::vector<TokenId>& unused() const;
  std::optional<TokenId> find_piece(std::string_view piece) const;
  int vocab_size() const;
  std::optional<TokenId> bos() const;
  std::optional<TokenId> eos() const;
  bool adds_bos() const;

 private:
  friend class StreamDecoder;
  struct Impl;
  explicit Tokenizer(std::unique_ptr<const Impl> impl);
  std::unique_ptr<const Impl> impl_;
};

// Reads tokenizer.json, and tokenizer_config.json and special_tokens_map.json where they exist, from a
// Hugging Face directory. Errors name the file and the field: malformed JSON, or a model, normalizer,
// pre-tokenizer, post-processor or decoder that is not supported, with the list of what is.
Result<TokenizerSpec> read_tokenizer_json(const std::filesystem::path& directory);

// The texts of these files; `config` (tokenizer_config.json) and `special_tokens` (special_tokens_map.json)
// may be empty. `name` is for messages.
struct TokenizerJsonText {
  std::string_view name = "tokenizer.json";
  std::string_view tokenizer;
  std::string_view config;
  std::string_view special_tokens = {};
};
Result<TokenizerSpec> parse_tokenizer_json(const TokenizerJsonText& text);

// Reads vocab.json and merges.txt of a Hugging Face directory, the files of GPT-2's tokenizer, and
// tokenizer_config.json and special_tokens_map.json where they exist.
Result<TokenizerSpec> read_gpt2_files(const std::filesystem::path& directory);

// The texts of these files; `config` and `special_tokens` may be empty. `name` is for messages.
struct Gpt2FilesText {
  std::string_view name = "tokenizer";
  std::string_view vocabulary;
  std::string_view merges;
  std::string_view config;
  std::string_view special_tokens = {};
};
Result<TokenizerSpec> parse_gpt2_files(const Gpt2FilesText& text);

// Sets the traits that a GGUF `tokenizer.ggml.pre` name means: split_patterns, ignore_merges, normalizer,
// add_bos and add_space_prefix. Error: an unknown name; the message lists the known ones.
Status apply_gguf_pre_tokenizer(std::string_view pre_name, TokenizerSpec& spec);

// The name that means the traits of `spec`; nullopt: there is none.
std::optional<std::string_view> gguf_pre_tokenizer_name(const TokenizerSpec& spec);

// Turns tokens into text as they come and never splits a UTF-8 character: an incomplete character waits for
// the next token. decode() of all tokens equals the concatenation of all push() and finish().
class StreamDecoder {
 public:
  explicit StreamDecoder(std::shared_ptr<const Tokenizer> tokenizer, bool skip_special = true);

  // The text that is now complete, valid until the next call; empty while a character is unfinished.
  std::string_view push(TokenId token);
  // The rest of the text; an unfinished character becomes U+FFFD.
  std::string finish();

 private:
  std::shared_ptr<const Tokenizer> tokenizer_;
  bool skip_special_;
  bool at_start_ = true;
  std::string pending_;   // bytes of an unfinished character, at most 3
  std::string complete_;  // text that push() returned
};

}  // namespace outrider
