// SPDX-License-Identifier: Apache-2.0
#include "training/heads/responses.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <unordered_map>

#include "base/counter_rng.h"
#include "device/durable_file.h"
#include "outrider/engine.h"
#include "training/progress.h"
#include "training/safetensors_file.h"

namespace outrider::training {
namespace {

namespace fs = std::filesystem;

constexpr int kBatch = 32;     // requests that run together
constexpr size_t kPart = 512;  // prompts per file
constexpr size_t kLongestPrompt = 384;
constexpr size_t kTextPrompt = 64;  // of a text without prompt

std::vector<TokenId> prompt_of(const Document& document) {
  const auto end = document.counted.end();
  auto first = std::find(document.counted.begin(), end, uint8_t{1});
  // The last response is the one given anew; a text is continued from near its beginning.
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

// `count` prompts, as many of each source, at random.
std::vector<std::vector<TokenId>> pick_prompts(const std::vector<DocumentSource>& sources,
                                               const HeadOptions& options) {
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
  // Mixed, so that every part of the run sees all sources.
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

Status write_part(const fs::path& path, const std::vector<Document>& documents) {
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

// Answers prompts[first, last), all together.
Result<std::vector<Document>> answer(Engine& engine, std::span<const std::vector<TokenId>> prompts,
                                     uint64_t first, const HeadOptions& options) {
  std::vector<Document> documents(prompts.size());
  Status failed;
  for (size_t i = 0; i < prompts.size(); ++i) {
    documents[i].tokens = prompts[i];
    documents[i].counted.assign(prompts[i].size(), 0);
    Request request{.prompt = prompts[i], .max_tokens = options.response_tokens};
    const double u = random_uniform({.seed = options.seed, .position = static_cast<int64_t>(first + i)});
    request.sampling.temperature = u < options.sampled_share ? static_cast<float>(options.temperature) : 0.0f;
    request.sampling.seed = options.seed + first + i;
    const auto sink = [&documents, i](RequestId, const outrider::Progress& news) {
      Document& document = documents[i];
      document.tokens.insert(document.tokens.end(), news.tokens.begin(), news.tokens.end());
      document.counted.resize(document.tokens.size(), 1);
    };
    OUTRIDER_TRY([[maybe_unused]] const RequestId id, engine.submit(std::move(request), sink));
  }
  while (engine.step()) {
  }
  return documents;
}

// Makes the folder one for these responses. Error: it is one for others.
Status claim_folder(const fs::path& folder, const std::vector<std::vector<TokenId>>& prompts,
                    const HeadOptions& options, const std::string& target_fingerprint) {
  uint64_t hash = 0;
  for (const auto& prompt : prompts) {
    for (const TokenId token : prompt) hash = mix64(hash ^ static_cast<uint64_t>(token));
    hash = mix64(~hash);
  }
  const nlohmann::json facts = {{"target", target_fingerprint},
                                {"prompts", hash},
                                {"response_tokens", options.response_tokens},
                                {"sampled_share", options.sampled_share},
                                {"temperature", options.temperature},
                                {"seed", options.seed}};
  OUTRIDER_RETURN_IF_ERROR(make_directories(folder));
  const fs::path description = folder / "description.json";
  std::ifstream in(description);
  if (!in) return write_durably(description, facts.dump(1) + "\n");
  if (nlohmann::json::parse(in, nullptr, /*allow_exceptions=*/false) == facts) return {};
  return usage_error(folder.string() +
                     " holds responses of another target, other prompts or other options; " +
                     "remove it or name another folder with --responses");
}

}  // namespace

Result<std::vector<DocumentSource>> regenerate_responses(const std::vector<DocumentSource>& sources,
                                                         const HeadOptions& options,
                                                         const std::string& target_fingerprint) {
  const std::vector<std::vector<TokenId>> prompts = pick_prompts(sources, options);
  if (prompts.empty()) return input_error("--regenerate: prompts are expected in --data, found none");
  const fs::path folder = options.responses.empty() ? options.out / "responses" : options.responses;
  OUTRIDER_RETURN_IF_ERROR(claim_folder(folder, prompts, options, target_fingerprint));
  EngineOptions engine_options;
  engine_options.model = options.target;
  engine_options.threads = options.threads;
  engine_options.max_batch = kBatch;
  OUTRIDER_TRY(const std::unique_ptr<Engine> engine, Engine::open(std::move(engine_options)));
  DocumentSource answered{.name = "responses", .documents = {}};
  Progress progress("answering prompts", static_cast<int64_t>(prompts.size()), 0);
  int64_t tokens = 0;
  for (size_t first = 0; first < prompts.size(); first += kPart) {
    const size_t count = std::min(kPart, prompts.size() - first);
    char name[48];
    std::snprintf(name, sizeof name, "part-%05zu.safetensors", first / kPart);
    std::vector<Document> documents;
    if (fs::exists(folder / name)) {
      OUTRIDER_TRY(documents, read_part(folder / name, engine->info().vocab_size));
    } else {
      OUTRIDER_TRY(documents, answer(*engine, std::span(prompts).subspan(first, count), first, options));
      OUTRIDER_RETURN_IF_ERROR(write_part(folder / name, documents));
    }
    for (Document& document : documents) {
      tokens += std::count(document.counted.begin(), document.counted.end(), uint8_t{1});
      answered.documents.push_back(std::move(document));
    }
    progress.update(static_cast<int64_t>(first + count), std::to_string(tokens) + " tokens");
  }
  std::vector<DocumentSource> result;
  result.push_back(std::move(answered));
  return result;
}

}  // namespace outrider::training
