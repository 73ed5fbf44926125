// SPDX-License-Identifier: Apache-2.0
#include "training/core/tokenizer_files.h"

#include "formats/hf/hf_config.h"
#include "platform/durable_file.h"
#include "tokenizer/tokenizer.h"

namespace outrider::training {
namespace fs = std::filesystem;

Result<TokenizerFacts> read_tokenizer_facts(const fs::path& directory) {
  OUTRIDER_TRY(const TokenizerSpec tokenizer, read_tokenizer_json(directory));
  OUTRIDER_TRY(const JsonFile generation, JsonFile::read(directory / "generation_config.json"));
  TokenizerFacts facts{.vocab_size = static_cast<int>(tokenizer.pieces.size()), .stop_tokens = {}};
  OUTRIDER_RETURN_IF_ERROR(read_stop_tokens(generation.root(), &facts.stop_tokens));
  if (facts.stop_tokens.empty()) return generation.root().fail("expected an eos_token_id, found none");
  facts.document_end = facts.stop_tokens.front();
  return facts;
}

Status copy_tokenizer_files(const fs::path& from, const fs::path& to) {
  OUTRIDER_RETURN_IF_ERROR(make_directories(to));
  for (const char* name : {"tokenizer.json", "tokenizer_config.json", "generation_config.json"}) {
    std::error_code error;
    if (fs::equivalent(from / name, to / name, error)) continue;
    fs::copy_file(from / name, to / name, fs::copy_options::overwrite_existing, error);
    if (error) return io_error("cannot copy " + (from / name).string() + ": " + error.message());
  }
  return {};
}

}  // namespace outrider::training
