// SPDX-License-Identifier: Apache-2.0
#include "models/backend/device/device_loop.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <thread>

namespace outrider {
namespace {

constexpr int64_t kStopsOfRow = 16;  // more are found by the host alone

}  // namespace

// A pass has a row for each node of each sequence.
DeviceLoop::Block::Block(int64_t rows)
    : pending(0),
      positions(pending + rows),
      remaining(positions + rows),
      limits(remaining + rows),
      accepted(limits + simt::kTreeLimits * rows),
      drafted(accepted + rows),
      tokens(drafted + rows),
      parents(tokens + rows),
      path(parents + rows),
      stops(path + rows),
      words(stops + 2 * kStopsOfRow * rows),
      count(words + simt::kLoopWords) {}

DeviceLoop::DeviceLoop(DeviceBackend& backend, Model& model, KvCache& cache, const Shape& shape,
                       DeviceDraft* draft)
    : backend_(backend),
      model_(model),
      cache_(cache),
      draft_(draft),
      shape_(shape),
      at_(shape.max_rows),
      block_(backend.launcher().device(), at_.count),
      rows_(backend.launcher().device(), {.rows = shape.max_rows,
                                          .sequences = shape.max_rows,
                                          .max_length = shape.max_length + shape.max_steps + shape.max_nodes,
                                          .page_size = cache.shape().page_size,
                                          .tail_size = shape.max_levels}),
      chooser_(
          backend.launcher().device(),
          {.rows = shape.max_rows, .vocab_size = shape.vocab_size, .row_size = model.config().vocab_size},
          shape.unused),
      moves_(draft != nullptr && draft->has_branches()
                 ? std::make_unique<EntryMoves>(backend.launcher().device(), cache)
                 : nullptr),
      // A step has at most three numbers for each row of its pass.
      ring_(backend.launcher().device().allocate_mapped(
          (simt::kRingWords + shape.max_steps * shape.max_rows * simt::kStepWords) * int64_t{sizeof(int)})),
      outcomes_(static_cast<size_t>(shape.max_rows)) {}

DeviceLoop::~DeviceLoop() {
  stop();
  lists_.clear();
  backend_.launcher().device().release_mapped(ring_);
}

std::string part_without_loop(const ModelConfig& config) {
  for (const LayerTraits& layer : config.listed_traits(config.layer_count)) {
    if (!layer.kind->reads_entries) return std::string(layer.kind->name) + " layers";
  }
  return {};
}

Result<std::unique_ptr<DeviceLoop>> DeviceLoop::make(Model& model, KvCache& cache, const Shape& shape,
                                                     DeviceDraft* draft) {
  OUTRIDER_CHECK(shape.max_rows > shape.max_nodes && shape.max_nodes >= shape.max_levels &&
                 (draft != nullptr || shape.max_nodes == 0));
  auto* backend = dynamic_cast<DeviceBackend*>(&model.backend());
  if (backend == nullptr) return usage_error("the target is not all on a device");
  if (!backend->has_all()) return usage_error("ranks share the target");
  if (const std::string part = part_without_loop(model.config()); !part.empty())
    return usage_error("the target has " + part);
  try {
    std::unique_ptr<DeviceLoop> loop(new DeviceLoop(*backend, model, cache, shape, draft));
    if (draft != nullptr) {
      OUTRIDER_RETURN_IF_ERROR(draft->reserve({.max_sequences = loop->max_sequences(true),
                                               .max_levels = shape.max_levels,
                                               .max_nodes = shape.max_nodes,
                                               .max_tokens = shape.max_steps * (shape.max_levels + 1),
                                               .max_length = shape.max_length}));
    }
    OUTRIDER_RETURN_IF_ERROR(loop->ready({1, shape.max_levels}));
    return loop;
  } catch (const std::bad_alloc&) {
    return resource_error("the device has not enough memory for its steps");
  }
}

simt::Rows<int> DeviceLoop::numbers(int64_t begin, int64_t count) const {
  return {block_.rows().data + begin, count};
}

simt::Trees DeviceLoop::trees(const Key& key) const {
  const auto [sequences, levels] = key;
  const int64_t nodes = levels > 0 ? shape_.max_nodes : 0;
  return {.pending = numbers(at_.pending, sequences),
          .positions = numbers(at_.positions, sequences),
          .remaining = numbers(at_.remaining, sequences),
          .limits = numbers(at_.limits, simt::kTreeLimits * sequences),
          .accepted = numbers(at_.accepted, sequences),
          .drafted = numbers(at_.drafted, sequences),
          .tokens = numbers(at_.tokens, (nodes + 1) * sequences),
          .parents = numbers(at_.parents, (nodes + 1) * sequences),
          .path = numbers(at_.path, (levels + 1) * sequences),
          .sequences = static_cast<int>(sequences),
          .levels = levels,
          .nodes = static_cast<int>(nodes)};
}

DeviceList DeviceLoop::record_body(const Key& key) {
  DeviceList body;
  const simt::Trees trees = this->trees(key);
  if (trees.levels > 0) draft_->record(trees, body);
  const int64_t rows = int64_t{trees.nodes + 1} * key.first;
  backend_.record(&rows_.recorded(), &body);
  Launcher& launcher = backend_.launcher();
  launcher.launch_items(KernelName::kPlaceTrees, simt::PlaceTreesArgs{trees, rows_.view()},
                        (rows + simt::kWarp - 1) / simt::kWarp);
  model_.forward(batch_of_rows(rows, rows), cache_);
  chooser_.choose(
      launcher,
      {.numbers = model_.logit_rows(), .places = rows_.places(), .rows = rows, .period = key.first});
  record_end(trees, body);
  backend_.record(nullptr, nullptr);
  return body;
}

// The walk, what follows it, and the next step.
void DeviceLoop::record_end(const simt::Trees& trees, DeviceList& body) {
  Launcher& launcher = backend_.launcher();
  const int64_t rows = int64_t{trees.nodes + 1} * trees.sequences;
  const auto chosen = rows_at<const int>(chooser_.chosen().address(), rows);
  if (trees.levels > 0) {  // else every path is the root, as start() has written it
    launcher.launch_items(KernelName::kWalkTrees, simt::WalkTreesArgs{trees, chosen}, trees.sequences);
    if (moves_) {
      const simt::TreeNodes nodes{{nullptr, 0}, {nullptr, 0}, trees.sequences, trees.levels};
      moves_->record(launcher, trees, nodes, rows_.view());
    }
    draft_->record_after_walk(trees, model_.feature_rows(), body);
    backend_.record(&rows_.recorded(), &body);
  }
  const int64_t words = simt::step_words(trees.levels, trees.nodes) * int64_t{trees.sequences};
  launcher.launch(
      KernelName::kNextStep,
      simt::NextStepArgs{.chosen = chosen,
                         .of = trees,
                         .stops = {numbers(at_.stops, 0).data, 2 * kStopsOfRow * shape_.max_rows},
                         .words = numbers(at_.words, simt::kLoopWords),
                         .ring = rows_at<int>(ring_.device, simt::kRingWords + shape_.max_steps * words)},
      {});
}

int64_t DeviceLoop::moves(const Key& key) const {
  return backend_.moves() + (key.second > 0 ? draft_->moves() : 0);
}

Status DeviceLoop::record(const Key& key) {
  // Scratch may grow while a list is recorded, whose first launches then name memory that is gone.
  DeviceList body;
  int64_t moves = -1;
  while (moves != this->moves(key)) {
    moves = this->moves(key);
    body = record_body(key);
  }
  DeviceList list;
  const auto going = reinterpret_cast<DeviceAddress>(numbers(at_.words + simt::kGoing, 1).data);
  list.repeat(going, shape_.max_steps, std::move(body));
  Recorded& recorded = lists_[key];
  recorded.moves = moves;
  OUTRIDER_TRY(recorded.list, backend_.launcher().device().load(std::move(list)));
  return {};
}

Status DeviceLoop::ready(const Key& key) {
  const auto found = lists_.find(key);
  return found != lists_.end() && found->second.moves == moves(key) ? Status() : record(key);
}

std::vector<int> DeviceLoop::block_of(std::span<const Row> rows, int steps) const {
  std::vector<int> block(static_cast<size_t>(at_.count));
  const auto put = [&](int64_t begin, int64_t index, int64_t number) {
    block[static_cast<size_t>(begin + index)] = static_cast<int>(number);
  };
  int64_t stops = 0;
  for (int64_t row = 0; row < std::ssize(rows); ++row) {
    const Row& of = rows[static_cast<size_t>(row)];
    put(at_.pending, row, of.token);
    put(at_.positions, row, of.kv->length());
    put(at_.remaining, row, of.remaining);
    for (const auto& [limit, number] :
         {std::pair(simt::kMostLevels, std::min(of.max_draft_len, shape_.max_levels)),
          std::pair(simt::kMostNodes, std::min(of.max_nodes, shape_.max_nodes)),
          std::pair(simt::kMostChildren, of.max_children)})
      put(at_.limits, limit * run_.first + row, number);
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

void DeviceLoop::set_choices(std::span<const Row> rows) {
  std::vector<ChoiceRow> choices;
  for (const Row& row : rows) choices.push_back(row.choice);
  chooser_.set_rows(choices);
}

void DeviceLoop::start(std::span<const Row> rows, int steps) {
  const bool drafts = std::ranges::any_of(rows, [](const Row& row) { return row.max_draft_len > 0; });
  const int64_t most = max_sequences(drafts);
  OUTRIDER_CHECK(!runs_ && steps > 0 && steps <= shape_.max_steps && !rows.empty() &&
                 std::ssize(rows) <= most);
  used_rows_ = std::ssize(rows);
  run_ = {std::min(static_cast<int64_t>(std::bit_ceil(rows.size())), most), drafts ? shape_.max_levels : 0};
  const Status status = ready(run_);
  OUTRIDER_CHECK(status.ok());  // the device takes lists, as one of them has shown
  set_choices(rows);
  std::vector<DevicePassRows::Pages> pages;
  for (const Row& row : rows) pages.push_back({row.kv->pages()});
  rows_.set_pages(pages);
  block_.write(block_of(rows, steps));
  auto* words = reinterpret_cast<int*>(ring_.host);
  for (int i = 0; i < simt::kRingWords; ++i) std::atomic_ref(words[i]).store(0, std::memory_order_release);
  lists_.at(run_).list->run();
  runs_ = true;
}

int DeviceLoop::word(simt::RingWord index) const {
  return std::atomic_ref(reinterpret_cast<int*>(ring_.host)[index]).load(std::memory_order_acquire);
}

bool DeviceLoop::wait_for_step(int step) const {
  const DeviceWait wait(backend_.launcher().device());
  while (word(simt::kStepsDone) <= step) {
    // The last step is done before the end is told.
    if (word(simt::kHasEnded) != 0 && word(simt::kStepsDone) <= step) return false;
    std::this_thread::yield();
  }
  return true;
}

std::span<const DeviceLoop::Outcome> DeviceLoop::outcomes_of(int step) {
  if (!wait_for_step(step)) return {};
  const auto [sequences, levels] = run_;
  const int nodes = levels > 0 ? shape_.max_nodes : 0;
  const int64_t step_words = simt::step_words(levels, nodes) * sequences;
  const int* words = reinterpret_cast<const int*>(ring_.host) + simt::kRingWords + step * step_words;
  for (int64_t row = 0; row < used_rows_; ++row) {
    const int* const of_row = words + row;
    const auto word = [&, sequences = sequences](int64_t index) { return of_row[index * sequences]; };
    Outcome& outcome = outcomes_[static_cast<size_t>(row)];
    outcome.accepted.clear();
    for (int depth = 0; depth < word(simt::kAccepted); ++depth)
      outcome.accepted.push_back(word(simt::kStepWords + depth));
    outcome.nodes.clear();
    const int64_t tokens = simt::kStepWords + levels;
    for (int node = 0; node < word(simt::kDrafted); ++node)
      outcome.nodes.push_back({.parent = word(tokens + nodes + node), .token = word(tokens + node)});
    outcome.token = word(simt::kOwnToken);
  }
  return std::span(outcomes_).first(static_cast<size_t>(used_rows_));
}

void DeviceLoop::stop() {
  if (!std::exchange(runs_, false)) return;
  std::atomic_ref(reinterpret_cast<int*>(ring_.host)[simt::kShallStop]).store(1, std::memory_order_release);
  const DeviceWait wait(backend_.launcher().device());
  while (word(simt::kHasEnded) == 0) std::this_thread::yield();
}

}  // namespace outrider
