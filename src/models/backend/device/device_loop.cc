// SPDX-License-Identifier: Apache-2.0
#include "models/backend/device/device_loop.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <thread>

namespace outrider {
namespace {

constexpr int64_t kStopsOfRow = 16;  // more are found by the host alone

// A batch of that many rows, each of another sequence. A recorded pass reads only their number.
ForwardBatch batch_of_rows(int64_t rows) {
  ForwardBatch batch;
  for (int32_t row = 0; row < rows; ++row) {
    batch.tokens.push_back(0);
    batch.positions.push_back(0);
    batch.slots.push_back(0);
    batch.sequences.push_back(row);
    batch.prefix_len.push_back(1);
    batch.tail_begin.push_back(0);
    batch.pages.push_back(0);
    batch.page_begin.push_back(row + 1);
    batch.logits_rows.push_back(row);
  }
  return batch;
}

}  // namespace

std::string part_without_loops(const ModelConfig& config) {
  for (const LayerTraits& layer : config.listed_traits(config.layer_count)) {
    if (layer.kind != &kAttentionKind) return std::string(layer.kind->name) + " layers";
    if (layer.mlp != &kDenseMlpKind) return std::string(layer.mlp->name) + " layers";
  }
  if (config.gates_attention) return "gates of attention";
  if (config.query_temperature.beta != 0) return "temperatures of queries";
  if (config.learned_positions.count > 0) return "learned positions";
  if (config.layer_inputs.size > 0) return "inputs of layers";
  return {};
}

DeviceLoop::Block::Block(const Shape& shape, int page_size)
    : pages_of_row((shape.max_length + shape.max_steps + page_size) / page_size),
      tokens(0),
      positions(tokens + shape.max_rows),
      places(positions + shape.max_rows),
      slots(places + shape.max_rows),
      entries(slots + shape.max_rows),
      pages(entries + shape.max_rows * simt::RowEntries::kNumbers),
      stops(pages + shape.max_rows * pages_of_row),
      words(stops + 2 * kStopsOfRow * shape.max_rows),
      count(words + simt::kLoopWords) {}

DeviceLoop::DeviceLoop(DeviceBackend& backend, Model& model, KvCache& cache, const Shape& shape)
    : backend_(backend),
      model_(model),
      cache_(cache),
      shape_(shape),
      at_(shape, cache.shape().page_size),
      block_(backend.launcher().device(), at_.count),
      chooser_(
          backend.launcher().device(),
          {.rows = shape.max_rows, .vocab_size = shape.vocab_size, .row_size = model.config().vocab_size},
          shape.unused),
      ring_(backend.launcher().device().allocate_mapped(
          (simt::kRingWords + shape.max_steps * shape.max_rows) * int64_t{sizeof(int)})) {
  const auto list = [&](int64_t begin, int64_t count) {
    const simt::Rows<int> numbers = this->numbers(begin, count);
    return simt::List<int>{numbers.data, numbers.count};
  };
  const int64_t rows = shape.max_rows;
  const simt::Rows<int> tokens = numbers(at_.tokens, rows), positions = numbers(at_.positions, rows);
  rows_ = {.tokens = {tokens.data, rows},
           .positions = {positions.data, rows},
           .slots = list(at_.slots, rows),
           .entries = list(at_.entries, rows * simt::RowEntries::kNumbers),
           .pages = list(at_.pages, rows * at_.pages_of_row),
           .position_count = shape.max_length + shape.max_steps};
}

DeviceLoop::~DeviceLoop() {
  stop();
  lists_.clear();
  backend_.launcher().device().release_mapped(ring_);
}

Result<std::unique_ptr<DeviceLoop>> DeviceLoop::make(Model& model, KvCache& cache, const Shape& shape) {
  auto* backend = dynamic_cast<DeviceBackend*>(&model.backend());
  if (backend == nullptr) return usage_error("the target is not all on a device");
  if (!backend->has_all()) return usage_error("ranks share the target");
  if (const std::string part = part_without_loops(model.config()); !part.empty())
    return usage_error("the target has " + part);
  try {
    std::unique_ptr<DeviceLoop> loop(new DeviceLoop(*backend, model, cache, shape));
    OUTRIDER_RETURN_IF_ERROR(loop->ready(1));
    return loop;
  } catch (const std::bad_alloc&) {
    return resource_error("the device has not enough memory for its steps");
  }
}

simt::Rows<int> DeviceLoop::numbers(int64_t begin, int64_t count) const {
  return {block_.rows().data + begin, count};
}

DeviceList DeviceLoop::record_body(int64_t rows) {
  DeviceList body;
  backend_.record(&rows_, &body);
  model_.forward(batch_of_rows(rows), cache_);
  const simt::Rows<int> places = numbers(at_.places, shape_.max_rows);
  chooser_.choose(backend_.launcher(), model_.logit_rows(), {places.data, places.count}, rows);
  const int64_t ring_words = simt::kRingWords + shape_.max_steps * rows;
  backend_.launcher().launch(
      KernelName::kNextStep,
      simt::NextStepArgs{.chosen = rows_at<const int>(chooser_.chosen().address(), rows),
                         .tokens = numbers(at_.tokens, rows),
                         .positions = numbers(at_.positions, rows),
                         .places = places,
                         .slots = numbers(at_.slots, rows),
                         .entries = numbers(at_.entries, rows * simt::RowEntries::kNumbers),
                         .pages = rows_.pages,
                         .stops = {numbers(at_.stops, 0).data, 2 * kStopsOfRow * shape_.max_rows},
                         .words = numbers(at_.words, simt::kLoopWords),
                         .ring = rows_at<int>(ring_.device, ring_words),
                         .rows = static_cast<int>(rows),
                         .page_size = cache_.shape().page_size,
                         .pages_of_row = static_cast<int>(at_.pages_of_row)},
      {});
  backend_.record(nullptr, nullptr);
  return body;
}

Status DeviceLoop::record(int64_t rows) {
  // Scratch may grow while a list is recorded, whose first launches then name memory that is gone.
  DeviceList body;
  int64_t moves = -1;
  while (moves != backend_.moves()) {
    moves = backend_.moves();
    body = record_body(rows);
  }
  DeviceList list;
  const auto going = reinterpret_cast<DeviceAddress>(numbers(at_.words + simt::kGoing, 1).data);
  list.repeat(going, shape_.max_steps, std::move(body));
  Recorded& recorded = lists_[rows];
  recorded.moves = moves;
  OUTRIDER_TRY(recorded.list, backend_.launcher().device().load(std::move(list)));
  return {};
}

Status DeviceLoop::ready(int64_t rows) {
  const auto found = lists_.find(rows);
  return found != lists_.end() && found->second.moves == backend_.moves() ? Status() : record(rows);
}

std::vector<int> DeviceLoop::block_of(std::span<const Row> rows, int steps) const {
  std::vector<int> block(static_cast<size_t>(at_.count));
  const auto put = [&](int64_t begin, int64_t index, int64_t number) {
    block[static_cast<size_t>(begin + index)] = static_cast<int>(number);
  };
  std::fill_n(block.begin() + at_.slots, shape_.max_rows, -1);
  std::fill_n(block.begin() + at_.pages, shape_.max_rows * at_.pages_of_row, -1);
  int64_t stops = 0;
  for (int64_t row = 0; row < std::ssize(rows); ++row) {
    const Row& of = rows[static_cast<size_t>(row)];
    const int64_t position = of.kv->length(), page_size = cache_.shape().page_size;
    const std::span<const int32_t> pages = of.kv->pages();
    put(at_.tokens, row, of.token);
    put(at_.positions, row, position);
    put(at_.places, row, position + 1);
    put(at_.slots, row, pages[static_cast<size_t>(position / page_size)] * page_size + position % page_size);
    put(at_.entries, row * simt::RowEntries::kNumbers, row * at_.pages_of_row);
    put(at_.entries, row * simt::RowEntries::kNumbers + 1, position + 1);
    std::ranges::copy(pages, block.begin() + at_.pages + row * at_.pages_of_row);
    for (const TokenId stop : of.stops.first(std::min(of.stops.size(), size_t{kStopsOfRow}))) {
      put(at_.stops, stops++, row);
      put(at_.stops, stops++, stop);
    }
  }
  put(at_.words, simt::kGoing, 1);
  put(at_.words, simt::kStepLimit, steps);
  put(at_.words, simt::kStopCount, stops / 2);
  return block;
}

void DeviceLoop::start(std::span<const Row> rows, int steps) {
  OUTRIDER_CHECK(!runs_ && steps > 0 && steps <= shape_.max_steps && !rows.empty() &&
                 std::ssize(rows) <= shape_.max_rows);
  used_rows_ = std::ssize(rows);
  row_count_ = std::min(static_cast<int64_t>(std::bit_ceil(rows.size())), shape_.max_rows);
  const Status status = ready(row_count_);
  OUTRIDER_CHECK(status.ok());  // the device takes lists, as one of them has shown
  std::vector<ChoiceRow> choices;
  for (const Row& row : rows) choices.push_back(row.choice);
  chooser_.set_rows(choices);
  block_.write(block_of(rows, steps));
  auto* words = reinterpret_cast<int*>(ring_.host);
  for (int i = 0; i < simt::kRingWords; ++i) std::atomic_ref(words[i]).store(0, std::memory_order_release);
  lists_.at(row_count_).list->run();
  runs_ = true;
}

int DeviceLoop::word(simt::RingWord index) const {
  return std::atomic_ref(reinterpret_cast<int*>(ring_.host)[index]).load(std::memory_order_acquire);
}

std::span<const TokenId> DeviceLoop::tokens_of(int step) {
  while (word(simt::kStepsDone) <= step) {
    // The last step is done before the end is told.
    if (word(simt::kHasEnded) != 0 && word(simt::kStepsDone) <= step) return {};
    std::this_thread::yield();
  }
  const auto* tokens = reinterpret_cast<const TokenId*>(ring_.host) + simt::kRingWords + step * row_count_;
  return {tokens, static_cast<size_t>(used_rows_)};
}

void DeviceLoop::stop() {
  if (!std::exchange(runs_, false)) return;
  std::atomic_ref(reinterpret_cast<int*>(ring_.host)[simt::kShallStop]).store(1, std::memory_order_release);
  while (word(simt::kHasEnded) == 0) std::this_thread::yield();
}

}  // namespace outrider
