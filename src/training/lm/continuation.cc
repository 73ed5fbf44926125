// SPDX-License-Identifier: Apache-2.0
#include "training/lm/continuation.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>
#include <string>

#include "base/counter_rng.h"
#include "platform/durable_file.h"
#include "training/core/progress.h"
#include "training/core/token_data.h"

namespace outrider::training {
namespace {

using Tokens = std::vector<uint16_t>;

// Picks `wanted` documents of the file at random, cuts each to its last `max_length` tokens, and sorts them
// by length.
std::vector<Tokens> pick_prompts(const Tokens& file, int document_end, int64_t wanted, int64_t max_length) {
  std::vector<Tokens> all;
  auto begin = file.begin();
  while (begin != file.end()) {
    const auto end = std::find(begin, file.end(), static_cast<uint16_t>(document_end));
    const auto from = end - begin > max_length ? end - max_length : begin;
    if (from != end) all.emplace_back(from, end);
    begin = end == file.end() ? end : end + 1;
  }
  std::vector<size_t> order(all.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [](size_t a, size_t b) { return mix64(a) < mix64(b); });
  order.resize(std::min(order.size(), static_cast<size_t>(wanted)));
  std::vector<Tokens> picked;
  for (const size_t index : order) picked.push_back(std::move(all[index]));
  std::stable_sort(picked.begin(), picked.end(),
                   [](const Tokens& a, const Tokens& b) { return a.size() < b.size(); });
  return picked;
}

// The last `length` tokens of each prompt, int64 [prompts, length].
at::Tensor prompt_matrix(const std::vector<Tokens>& prompts, size_t length) {
  at::Tensor matrix =
      at::empty({static_cast<int64_t>(prompts.size()), static_cast<int64_t>(length)}, at::kLong);
  int64_t* out = matrix.data_ptr<int64_t>();
  for (const Tokens& prompt : prompts)
    out = std::copy(prompt.end() - static_cast<int64_t>(length), prompt.end(), out);
  return matrix;
}

at::Tensor next_tokens(const at::Tensor& logits, double temperature) {
  if (temperature == 0.0) return logits.argmax(-1, /*keepdim=*/true);
  return at::multinomial(at::softmax(logits.to(at::kFloat) / temperature, -1), 1);
}

// Returns int64 [prompts, length + at most new_tokens]. Rows go on after a stop token; the caller cuts them.
at::Tensor decode(const Llama& teacher, const LlamaWeights& weights, const at::Tensor& prompts,
                  const std::vector<int>& stop_tokens, int64_t new_tokens, double temperature) {
  const at::Device device = weights.embedding.device();
  KvCache cache =
      teacher.make_cache(prompts.size(0), prompts.size(1) + new_tokens, weights.embedding.scalar_type());
  std::vector<at::Tensor> columns = {prompts.to(device)};
  at::Tensor stopped = at::zeros({prompts.size(0), 1}, at::TensorOptions().dtype(at::kBool).device(device));
  for (int64_t i = 0; i < new_tokens; ++i) {
    const at::Tensor hidden = teacher.extend(weights, columns.back(), cache);
    columns.push_back(next_tokens(at::linear(hidden, weights.embedding), temperature));
    for (const int stop : stop_tokens) stopped = stopped.logical_or(columns.back().eq(stop));
    if (stopped.all().item<bool>()) break;
  }
  return at::cat(columns, 1).cpu();
}

// Appends each row up to its first stop token after the prompt, then a document end.
void append_documents(const at::Tensor& rows, int64_t prompt_length, const TokenizerFacts& tokenizer,
                      Tokens& out) {
  const int64_t* data = rows.data_ptr<int64_t>();
  for (int64_t row = 0; row < rows.size(0); ++row, data += rows.size(1)) {
    const int64_t* end = std::find_if(data + prompt_length, data + rows.size(1), [&](int64_t token) {
      return std::find(tokenizer.stop_tokens.begin(), tokenizer.stop_tokens.end(), token) !=
             tokenizer.stop_tokens.end();
    });
    out.insert(out.end(), data, end);
    if (end != data + rows.size(1) && *end != tokenizer.document_end)
      out.push_back(static_cast<uint16_t>(*end));
    out.push_back(static_cast<uint16_t>(tokenizer.document_end));
  }
}

}  // namespace

Status write_continuations(const Llama& teacher, const LlamaWeights& weights, const TokenizerFacts& tokenizer,
                           const std::filesystem::path& prompt_file, const ContinuationOptions& options,
                           const std::filesystem::path& out) {
  OUTRIDER_TRY(const Tokens file, read_token_file(prompt_file, tokenizer.vocab_size));
  const int64_t max_prompt =
      std::min<int64_t>(options.max_prompt, teacher.config().max_context - options.new_tokens);
  if (max_prompt < 1)
    return usage_error("the teacher's context leaves no room for a prompt and its continuation");
  const std::vector<Tokens> prompts = pick_prompts(file, tokenizer.document_end, options.prompts, max_prompt);

  const at::NoGradGuard no_grad;
  at::manual_seed(options.seed);
  Progress progress("continuing " + prompt_file.stem().string(), static_cast<int64_t>(prompts.size()), 0);
  Tokens documents;
  const auto step = static_cast<size_t>(options.batch);
  for (size_t first = 0; first < prompts.size(); first += step) {
    const std::vector<Tokens> group(
        prompts.begin() + static_cast<int64_t>(first),
        prompts.begin() + static_cast<int64_t>(std::min(first + step, prompts.size())));
    const size_t length = group.front().size();
    const double u = random_uniform({.seed = options.seed, .position = static_cast<int64_t>(first)});
    const double temperature = u < options.sampled_share ? options.temperature : 0.0;
    const at::Tensor rows = decode(teacher, weights, prompt_matrix(group, length), tokenizer.stop_tokens,
                                   options.new_tokens, temperature);
    append_documents(rows, static_cast<int64_t>(length), tokenizer, documents);
    progress.update(static_cast<int64_t>(first + group.size()), std::to_string(documents.size()) + " tokens");
  }
  return write_durably(
      out, {reinterpret_cast<const char*>(documents.data()), documents.size() * sizeof(uint16_t)});
}

}  // namespace outrider::training
