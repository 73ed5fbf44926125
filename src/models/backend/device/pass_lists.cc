// SPDX-License-Identifier: Apache-2.0
#include "models/backend/device/pass_lists.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "models/backend/device/attended_lists.h"
#include "models/backend/device/pass_rows.h"
#include "models/backend/device/row_limits.h"

namespace outrider {
namespace {

constexpr size_t kMostLists = 64;  // drafters may choose among many parts of a network

int64_t bucket_of(int64_t rows) { return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(rows))); }

// Operations go into a list until the end.
class Recording {
 public:
  Recording(DeviceOps& ops, const RecordedRows& rows, DeviceList& list) : ops_(ops) {
    ops_.record(&rows, &list);
  }
  ~Recording() { ops_.record(nullptr, nullptr); }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

 private:
  DeviceOps& ops_;
};

const DeviceStates& device_states_of(KvCache& cache) {
  return dynamic_cast<const DeviceStates&>(cache.storage().states());
}

}  // namespace

PassLists::Layout::Layout(const Key& key, const RepeatedPass& pass) {
  int64_t end = 0;
  const auto place = [&end](int64_t count) { return std::exchange(end, end + count); };
  tokens = place(key.rows);
  embedded = place(key.rows);
  positions = place(key.rows);
  slots = place(key.rows);
  entries = place(key.rows * simt::RowEntries::kNumbers);
  wanted = place(key.wanted);
  wanted_entries = place(key.wanted * simt::RowEntries::kNumbers);
  factors = place(pass.query_factors.empty() ? 0 : key.rows);
  for (const RowRotations& one : pass.rotations) rotations.push_back(place(key.rows * one.dim));
  nodes = place(key.nodes * simt::StateNodes::kNumbers);
  sequences = place(key.nodes == 0 ? 0 : key.rows * simt::StateSequences::kNumbers);
  order = place(key.nodes);
  kept_rows = place(key.nodes == 0 ? 0 : key.rows);
  kept_updates = place(key.nodes == 0 ? 0 : key.rows);
  lists = end;
}

PassLists::Recorded::Recorded(simt::Rows<const int> words, const RepeatedPass& pass, const Key& of)
    : key(of), at(of, pass) {
  const auto view = [&](int64_t begin, int64_t count) {
    return simt::Rows<const int>{words.data + begin, count};
  };
  const auto list = [&](int64_t begin, int64_t count) {
    return simt::List<int>{view(begin, count).data, count};
  };
  const auto floats = [&](int64_t begin, int64_t count) {
    return simt::List<float>{reinterpret_cast<const float*>(view(begin, count).data), count};
  };
  const bool lists_wanted = key.wanted < key.rows;
  rows = {.tokens = view(at.tokens, key.rows),
          .positions = view(at.positions, key.rows),
          .slots = list(at.slots, key.rows),
          .entries = list(at.entries, key.rows * simt::RowEntries::kNumbers),
          .pages = list(at.lists, words.count - at.lists),
          .tails = list(at.lists, words.count - at.lists),
          .wanted = lists_wanted ? view(at.wanted, key.wanted) : simt::Rows<const int>{},
          .wanted_entries = list(at.wanted_entries, key.wanted * simt::RowEntries::kNumbers),
          .query_factors = floats(at.factors, pass.query_factors.empty() ? 0 : key.rows),
          .embedded = view(at.embedded, key.rows)};
  if (key.nodes > 0) {
    rows.states = {.nodes = {list(at.nodes, key.nodes * simt::StateNodes::kNumbers)},
                   .sequences = {list(at.sequences, key.rows * simt::StateSequences::kNumbers)},
                   .order = list(at.order, key.nodes),
                   .kept_rows = view(at.kept_rows, key.rows),
                   .kept_updates = view(at.kept_updates, key.rows),
                   .slots = static_cast<int>(key.slots)};
  }
  for (size_t i = 0; i < at.rotations.size(); ++i) {
    const RowRotations& of_rope = pass.rotations[i];
    rows.rotations.emplace_back(of_rope.of_all, floats(at.rotations[i], key.rows * of_rope.dim));
  }
}

bool PassLists::takes(const ForwardBatch& batch) const {
  return problem().empty() && batch.rows() <= kMostListedRows && batch.resumed_rows.empty() &&
         batch.hidden_state_rows.empty() && batch.adapters.empty();
}

// Rows without logits are left out of the last layer. A list of the others needs a row that is none of them.
PassLists::Key PassLists::key_of(const RepeatedPass& pass) const {
  const int64_t rows = pass.batch.rows(), wanted = std::ssize(pass.batch.logits_rows);
  Key key{.rows = bucket_of(rows),
          .wanted = wanted == 0 ? 0 : bucket_of(wanted),
          .cache = &pass.cache,
          .layers = pass.layers,
          .keeps_features = pass.keeps_features};
  if (wanted < rows) key.rows = bucket_of(std::max(rows, key.wanted + 1));
  if (pass.list_states) {
    // Every sequence may have committed as many entries as it has rows.
    key.nodes = bucket_of(std::max(std::ssize(states_.order), 2 * key.rows));
    key.slots = bucket_of(std::max(states_.slots, 1));
  }
  return key;
}

void PassLists::reserve_words(const RepeatedPass& pass, int64_t count) {
  if (read_words_ != nullptr && count <= read_words_->count()) return;
  const int64_t usual = listed_words(pass.cache.shape().page_count);
  const int64_t grown = read_words_ == nullptr ? 0 : 2 * count;
  lists_.clear();
  read_words_.reset();  // before the new ones take their place
  read_words_ = std::make_unique<DeviceNumbers<int>>(ops_.device(), std::max({usual, count, grown}));
}

PassLists::Recorded& PassLists::list_of(const RepeatedPass& pass, int64_t list_words) {
  const Key key = key_of(pass);
  reserve_words(pass, Layout(key, pass).lists + list_words);
  const auto found = std::ranges::find(lists_, key, &Recorded::key);
  if (found == lists_.end()) {
    if (lists_.size() == kMostLists) lists_.pop_back();
    const simt::Rows<int> words = read_words_->rows();
    lists_.emplace_front(simt::Rows<const int>{words.data, words.count}, pass, key);
  } else {
    lists_.splice(lists_.begin(), lists_, found);
  }
  return lists_.front();
}

void PassLists::put_rows(const ForwardBatch& batch, const Recorded& recorded) {
  const Layout& at = recorded.at;
  std::ranges::copy(embedding_.own_rows(batch.tokens), words_.begin() + at.tokens);
  std::ranges::copy(embedding_.places(batch.tokens, recorded.key.rows), words_.begin() + at.embedded);
  std::ranges::copy(batch.positions, words_.begin() + at.positions);
  std::fill(words_.begin() + at.slots, words_.begin() + at.entries, -1);
  std::ranges::copy(batch.slots, words_.begin() + at.slots);
  std::ranges::copy(batch.logits_rows, words_.begin() + at.wanted);
}

void PassLists::put_numbers(const RepeatedPass& pass, const Layout& at) {
  const auto put = [this](int64_t begin, const float* numbers, int64_t count) {
    std::memcpy(words_.data() + begin, numbers, static_cast<size_t>(count) * sizeof(float));
  };
  const int64_t rows = pass.batch.rows();
  if (!pass.query_factors.empty()) put(at.factors, pass.query_factors.numbers.data(), rows);
  for (size_t i = 0; i < at.rotations.size(); ++i)
    put(at.rotations[i], pass.rotations[i].numbers, rows * pass.rotations[i].dim);
}

void PassLists::put_states(const Key& key, const Layout& at) {
  if (key.nodes == 0) return;
  std::fill(words_.begin() + at.nodes, words_.begin() + at.sequences, -1);
  std::fill_n(words_.begin() + at.kept_updates, key.rows, -1);
  const auto put = [this](const std::vector<int>& numbers, int64_t begin) {
    std::ranges::copy(numbers, words_.begin() + begin);
  };
  put(states_.nodes, at.nodes);
  put(states_.sequences, at.sequences);
  put(states_.order, at.order);
  put(states_.kept_rows, at.kept_rows);
  put(states_.kept_updates, at.kept_updates);
}

void PassLists::write(const RepeatedPass& pass, const AttendedLists& lists, const Recorded& recorded) {
  const Layout& at = recorded.at;
  constexpr int64_t kNumbers = simt::RowEntries::kNumbers;
  words_.assign(static_cast<size_t>(at.lists), 0);
  put_rows(pass.batch, recorded);
  put_numbers(pass, at);
  put_states(recorded.key, at);
  words_.insert(words_.end(), lists.pages.begin(), lists.pages.end());
  words_.insert(words_.end(), lists.tails.begin(), lists.tails.end());
  for (int64_t i = 0; i < std::ssize(lists.entries); ++i) {
    const bool is_tail = i % kNumbers == 2;  // where it begins, after all pages
    words_[static_cast<size_t>(at.entries + i)] =
        lists.entries[static_cast<size_t>(i)] + (is_tail ? static_cast<int>(lists.pages.size()) : 0);
  }
  for (int64_t i = 0; i < std::ssize(pass.batch.logits_rows); ++i) {
    const int64_t row = pass.batch.logits_rows[static_cast<size_t>(i)];
    std::copy_n(words_.begin() + at.entries + row * kNumbers, kNumbers,
                words_.begin() + at.wanted_entries + i * kNumbers);
  }
}

// A list whose scratch is too small for these rows will be recorded again.
void PassLists::make_room(Recorded& recorded) const {
  int64_t longest = 0;
  for (const AttentionRow& row : rows_) longest = std::max<int64_t>(longest, row.prefix_len + row.tail_len);
  const int64_t length = length_bucket(longest);
  if (length <= recorded.rows.max_length) return;
  recorded.rows.max_length = length;
  recorded.moves = -1;
}

// A list that names states which have moved will be recorded again.
void PassLists::follow_states(const RepeatedPass& pass, Recorded& recorded) {
  if (!pass.list_states) return;
  const DeviceStates& states = device_states_of(pass.cache);
  if (recorded.states == states.states() && recorded.updates == states.updates()) return;
  recorded.states = states.states();
  recorded.updates = states.updates();
  recorded.moves = -1;
}

Status PassLists::record(const RepeatedPass& pass, Recorded& recorded) {
  const ForwardBatch batch = batch_of_rows(recorded.key.rows, recorded.key.wanted);
  DeviceList list;
  // Scratch may grow while a list is recorded, whose first launches then name memory that is gone.
  int64_t moves = -1;
  while (moves != ops_.moves()) {
    moves = ops_.moves();
    list = DeviceList();
    const Recording recording(ops_, recorded.rows, list);
    pass.operations(batch);
  }
  if (recorded.list == nullptr || !recorded.list->update(list)) {
    OUTRIDER_TRY(recorded.list, ops_.device().load(std::move(list)));
  }
  recorded.moves = moves;
  return {};
}

void PassLists::run(const RepeatedPass& pass) {
  rows_.clear();
  for (int32_t row = 0; row < pass.batch.rows(); ++row) rows_.push_back(attention_row(pass.batch, row));
  const AttendedLists lists(rows_, pass.cache.shape().page_size);
  if (pass.list_states) states_ = pass.list_states(device_states_of(pass.cache));
  Recorded& recorded = list_of(pass, std::ssize(lists.pages) + std::ssize(lists.tails));
  write(pass, lists, recorded);
  make_room(recorded);
  follow_states(pass, recorded);
  if (recorded.moves != ops_.moves()) {
    if (const Status status = record(pass, recorded); !status.ok()) {
      problem_ = status.error().message;
      if (!ranks_.part().is_whole()) throw RankFailure("expected a list of the pass, found that " + problem_);
      log_info("the device gets each operation of a pass by itself: " + problem_);
      lists_.clear();
      return pass.operations(pass.batch);
    }
  }
  read_words_->write(words_);
  recorded.list->run();
}

}  // namespace outrider
