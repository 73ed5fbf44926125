// SPDX-License-Identifier: Apache-2.0
#include "training/core/tokenizer_files.h"

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>

#include "platform/durable_file.h"

namespace outrider::training {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

Result<json> read_json(const fs::path& path) {
  std::ifstream in(path);
  if (!in)
    return io_error("cannot read " + path.string() +
                    ": a folder made by tools/train_tokenizer.py is expected");
  json root = json::parse(in, nullptr, /*allow_exceptions=*/false);
  if (root.is_discarded()) return input_error(path.string() + ": not JSON");
  return root;
}

}  // namespace

Result<TokenizerFacts> read_tokenizer_facts(const fs::path& directory) {
  OUTRIDER_TRY(const json tokenizer, read_json(directory / "tokenizer.json"));
  OUTRIDER_TRY(const json generation, read_json(directory / "generation_config.json"));
  try {
    TokenizerFacts facts;
    for (const auto& [piece, id] : tokenizer.at("model").at("vocab").items()) {
      facts.vocab_size = std::max(facts.vocab_size, id.get<int>() + 1);
    }
    for (const json& token : tokenizer.at("added_tokens")) {
      facts.vocab_size = std::max(facts.vocab_size, token.at("id").get<int>() + 1);
    }
    const json& end = generation.at("eos_token_id");
    facts.stop_tokens = end.is_array() ? end.get<std::vector<int>>() : std::vector<int>{end.get<int>()};
    if (facts.stop_tokens.empty())
      return input_error(directory.string() + ": generation_config.json has no eos_token_id");
    facts.document_end = facts.stop_tokens.front();
    return facts;
  } catch (const json::exception& error) {
    return input_error(directory.string() + ": " + error.what());
  }
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
