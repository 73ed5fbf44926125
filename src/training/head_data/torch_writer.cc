// SPDX-License-Identifier: Apache-2.0
#include "training/head_data/torch_writer.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/counter_rng.h"

namespace outrider::training {
namespace {

constexpr int64_t kWaveTexts = 1024;     // texts written together, at most
constexpr int64_t kSortedTexts = 16384;  // tasks that are sorted by length, so that waves have little padding
constexpr int64_t kPromptTokens = 32768;  // tokens of prompts in one pass: attention holds all their scores
constexpr int64_t kStepsPerLook = 16;     // tokens of each text between two looks for texts that have ended
constexpr int64_t kEntryUnit = 64;        // entries that attention sees are a multiple of this

int64_t rounded_up(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

at::Tensor drawn_tokens(const at::Tensor& logits, const at::Tensor& top_p, const at::Tensor& uniforms) {
  at::Tensor probabilities = at::softmax(logits, -1), ids;
  if (top_p.defined()) {
    std::tie(probabilities, ids) = probabilities.sort(/*dim=*/-1, /*descending=*/true);
    const at::Tensor before = probabilities.cumsum(-1) - probabilities;
    probabilities = probabilities.masked_fill(before.ge(top_p), 0.0);
  }
  const at::Tensor sums = probabilities.cumsum(-1);
  const at::Tensor total = sums.narrow(-1, sums.size(-1) - 1, 1);
  // Rounding may lift a uniform below one to the total: the last token that can be drawn stands for it.
  const at::Tensor last = sums.lt(total).sum(-1, /*keepdim=*/true);
  const at::Tensor place =
      at::minimum(at::searchsorted(sums, uniforms * total, /*out_int32=*/false, /*right=*/true), last);
  return (ids.defined() ? ids.gather(-1, place) : place).squeeze(-1);
}

// Texts that are written together, one token each per pass.
class TorchWriter::Wave {
 public:
  Wave(const TorchWriter& writer, std::span<const WritingTask> tasks, std::vector<size_t> indices)
      : writer_(writer), tasks_(tasks), rows_(std::move(indices)), texts_(rows_.size()) {
    int64_t longest = 0;
    for (const size_t index : rows_) {
      longest = std::max(longest, std::ssize(tasks_[index].prompt));
      limit_ = std::max(limit_, tasks_[index].max_tokens);
    }
    entries_ = longest;
    memory_ = writer_.torch_.make_memory(std::ssize(rows_),
                                         rounded_up(longest + limit_ + kStepsPerLook, kEntryUnit));
  }

  void write(const TextSink& sink, GenerationProgress& shown) {
    read_prompts();
    while (!rows_.empty()) {
      const at::Tensor block = steps();
      const std::vector<int64_t> kept = take(block, sink, shown);
      if (std::ssize(kept) < block.size(0)) keep(kept);
    }
  }

 private:
  // Rows with tokens drawn from all tokens, or from the likeliest ones.
  struct Sampled {
    at::Tensor rows;                 // int64 [sampled]
    at::Tensor temperatures, top_p;  // f32 [sampled, 1]; top_p is undefined: all tokens
  };

  at::Tensor on_device(const std::vector<int64_t>& values) const {
    return at::tensor(values, at::kLong).to(writer_.torch_.device());
  }
  at::Tensor column(const std::vector<float>& values) const {
    return at::tensor(values, at::kFloat).unsqueeze(1).to(writer_.torch_.device());
  }

  void read_prompts() {
    std::vector<at::Tensor> last;
    std::vector<int64_t> lengths;
    for (size_t first = 0; first < rows_.size();) {
      std::vector<std::span<const TokenId>> prompts;
      int64_t longest = 0;
      while (first + prompts.size() < rows_.size()) {
        const std::span<const TokenId> prompt = tasks_[rows_[first + prompts.size()]].prompt;
        longest = std::max(longest, std::ssize(prompt));
        if (!prompts.empty() && longest * (std::ssize(prompts) + 1) > kPromptTokens) break;
        prompts.push_back(prompt);
        lengths.push_back(std::ssize(prompt));
      }
      last.push_back(writer_.torch_.read_prompts(prompts, static_cast<int64_t>(first), memory_));
      first += prompts.size();
    }
    positions_ = on_device(lengths);
    find_sampled();
    next_ = chosen(at::cat(last), uniforms(/*ahead=*/0).front());
  }

  // Finds the rows that are sampled, from all tokens and from the likeliest ones.
  void find_sampled() {
    sampled_.clear();
    for (const bool is_cut : {false, true}) {
      std::vector<int64_t> rows;
      std::vector<float> temperatures, top_p;
      for (size_t row = 0; row < rows_.size(); ++row) {
        const WritingTask& task = tasks_[rows_[row]];
        if (task.temperature <= 0.0 || (task.top_p < 1.0) != is_cut) continue;
        rows.push_back(static_cast<int64_t>(row));
        temperatures.push_back(static_cast<float>(task.temperature));
        top_p.push_back(static_cast<float>(task.top_p));
      }
      if (rows.empty()) continue;
      sampled_.push_back({.rows = on_device(rows),
                          .temperatures = column(temperatures),
                          .top_p = is_cut ? column(top_p) : at::Tensor()});
    }
  }

  // The draws of kStepsPerLook tokens, f32 [rows, 1] each. `ahead`: tokens of every row that were chosen
  // before and are not in texts_
  std::vector<at::Tensor> uniforms(int64_t ahead) const {
    if (sampled_.empty()) return std::vector<at::Tensor>(kStepsPerLook);
    std::vector<float> draws;
    for (int64_t step = 0; step < kStepsPerLook; ++step) {
      for (size_t row = 0; row < rows_.size(); ++row) {
        const WritingTask& task = tasks_[rows_[row]];
        const int64_t place = std::ssize(task.prompt) + std::ssize(texts_[row]) + ahead + step;
        draws.push_back(static_cast<float>(random_uniform({.seed = task.seed, .position = place})));
      }
    }
    return column(draws).view({kStepsPerLook, std::ssize(rows_), 1}).unbind(0);
  }

  // The next token of every text after `hidden` [texts, hidden].
  at::Tensor chosen(const at::Tensor& hidden, const at::Tensor& uniforms) const {
    const at::Tensor logits =
        at::linear(hidden.to(writer_.head_.scalar_type()), writer_.head_).to(at::kFloat);
    at::Tensor next = logits.argmax(-1);
    for (const Sampled& sampled : sampled_) {
      const at::Tensor drawn = drawn_tokens(logits.index_select(0, sampled.rows) / sampled.temperatures,
                                            sampled.top_p, uniforms.index_select(0, sampled.rows));
      next = next.index_copy(0, sampled.rows, drawn);
    }
    return next;
  }

  // Writes kStepsPerLook tokens of every text: int64 [texts, steps], on the CPU.
  at::Tensor steps() {
    const std::vector<at::Tensor> draws = uniforms(/*ahead=*/1);
    std::vector<at::Tensor> written;
    for (int64_t step = 0; step < kStepsPerLook; ++step) {
      written.push_back(next_);
      const int64_t seen = std::min(rounded_up(++entries_, kEntryUnit), memory_.capacity());
      const at::Tensor hidden = writer_.torch_.append(next_, positions_, seen, memory_);
      positions_ = positions_ + 1;
      next_ = chosen(hidden, draws[static_cast<size_t>(step)]);
    }
    return at::stack(written, 1).cpu();
  }

  // Adds a block's tokens to the texts and hands over complete texts. Returns the rows of
  // incomplete texts.
  std::vector<int64_t> take(const at::Tensor& block, const TextSink& sink, GenerationProgress& shown) {
    const std::vector<TokenId>& stops = writer_.target_.config().stop_tokens;
    std::vector<int64_t> kept;
    int64_t tokens = 0, complete = 0;
    for (size_t row = 0; row < rows_.size(); ++row) {
      const int64_t* token = block.data_ptr<int64_t>() + static_cast<int64_t>(row) * kStepsPerLook;
      std::vector<TokenId>& text = texts_[row];
      bool ends = false;
      for (int64_t step = 0; step < kStepsPerLook && !ends; ++step, ++tokens) {
        text.push_back(static_cast<TokenId>(token[step]));
        ends = std::ssize(text) == tasks_[rows_[row]].max_tokens ||
               std::ranges::find(stops, text.back()) != stops.end();
      }
      if (!ends) {
        kept.push_back(static_cast<int64_t>(row));
        continue;
      }
      sink(rows_[row], std::move(text));
      ++complete;
    }
    shown.add(tokens, complete);
    return kept;
  }

  void keep(const std::vector<int64_t>& kept) {
    std::vector<size_t> rows;
    std::vector<std::vector<TokenId>> texts;
    for (const int64_t row : kept) {
      rows.push_back(rows_[static_cast<size_t>(row)]);
      texts.push_back(std::move(texts_[static_cast<size_t>(row)]));
    }
    rows_ = std::move(rows);
    texts_ = std::move(texts);
    if (rows_.empty()) return;
    const at::Tensor index = on_device(kept);
    memory_.keep(index);
    positions_ = positions_.index_select(0, index);
    next_ = next_.index_select(0, index);
    find_sampled();
  }

  const TorchWriter& writer_;
  std::span<const WritingTask> tasks_;
  std::vector<size_t> rows_;                 // by row: index of its task
  std::vector<std::vector<TokenId>> texts_;  // by row
  int64_t limit_ = 0, entries_ = 0;          // most tokens of a text; entries of the longest row
  TorchTarget::Memory memory_;
  at::Tensor positions_, next_;  // int64 [rows]: of the next token, and that token
  std::vector<Sampled> sampled_;
};

TorchWriter::TorchWriter(const FrozenTarget& target, int64_t memory)
    : target_(target),
      torch_(*target.moved()),
      memory_(memory),
      head_(target.output_head().to(torch_.type()).to(torch_.device())) {}

int64_t TorchWriter::preferred_tasks() const { return kSortedTexts; }

Status TorchWriter::write(std::span<const WritingTask> tasks, const TextSink& sink,
                          GenerationProgress& shown) {
  const at::NoGradGuard no_grad;
  const auto entries = [&](size_t index) {
    return std::ssize(tasks[index].prompt) + tasks[index].max_tokens + kEntryUnit;
  };
  std::vector<size_t> order(tasks.size());
  std::iota(order.begin(), order.end(), size_t{0});
  for (size_t first = 0; first < order.size(); first += kSortedTexts) {
    const std::span<size_t> part =
        std::span(order).subspan(first, std::min<size_t>(kSortedTexts, order.size() - first));
    // The longest first: memory that is too small is found at once.
    std::ranges::stable_sort(part, [&](size_t a, size_t b) { return entries(a) > entries(b); });
    for (size_t at = 0; at < part.size();) {
      const int64_t fits = memory_ / (entries(part[at]) * torch_.bytes_per_entry());
      const auto count =
          std::min<size_t>(part.size() - at, static_cast<size_t>(std::clamp<int64_t>(fits, 1, kWaveTexts)));
      Wave(*this, tasks,
           {part.begin() + static_cast<int64_t>(at), part.begin() + static_cast<int64_t>(at + count)})
          .write(sink, shown);
      at += count;
    }
  }
  return {};
}

}  // namespace outrider::training
