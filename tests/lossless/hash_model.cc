// SPDX-License-Identifier: Apache-2.0
#include "tests/lossless/hash_model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/check.h"
#include "base/counter_rng.h"

namespace outrider {
namespace {

uint64_t absorb(uint64_t hash, int64_t token, int64_t position) {
  return mix64(mix64(hash ^ static_cast<uint64_t>(token)) ^ static_cast<uint64_t>(position));
}

constexpr int64_t kLayers = 2;
constexpr int64_t kStateSize = 2;

// The state of a row after the first layer, in numbers that a float holds exactly.
struct State {
  float low = 0.0f;
  float high = 0.0f;
};

State state_of(uint64_t hash) {
  constexpr uint64_t kMask = (1 << 24) - 1;
  return {static_cast<float>(hash & kMask), static_cast<float>(hash >> 24 & kMask)};
}

// A poisoned KV entry holds NaN, which no integer represents; a row that reads one has another state.
int64_t as_integer(float value) {
  return std::isnan(value) ? std::numeric_limits<int64_t>::min() : static_cast<int64_t>(value);
}

uint64_t absorb(uint64_t hash, State state) {
  return absorb(hash, as_integer(state.low), as_integer(state.high));
}

// The state of the third layer after one more entry.
State next(State before, State update) { return state_of(absorb(absorb(0, before), update)); }

State read_state(const float* numbers) { return {numbers[0], numbers[1]}; }

void write_state(State state, float* numbers) {
  numbers[0] = state.low;
  numbers[1] = state.high;
}

float noise(uint64_t hash, size_t token) {
  return static_cast<float>(static_cast<int64_t>(mix64(hash ^ (token + 1)) % 4096) - 2048) / 512.0f;
}

// A number in [0, 1).
double share_of(uint64_t hash) { return static_cast<double>(hash >> 11) * 0x1.0p-53; }

}  // namespace

HashModel::HashModel(double error_rate, uint64_t seed, bool has_state)
    : error_rate_(error_rate), seed_(seed), has_state_(has_state) {
  config_.family = "hash";
  config_.vocab_size = kOutputs;
  config_.stop_tokens = {kEos};
  config_.layer_count = kLayers;
  config_.hidden_size = kStateSize;
  config_.max_context = 1 << 20;
}

KvShape HashModel::kv_shape() const {
  KvShape shape{.layer_count = kLayers, .kv_head_count = 1, .head_dim = kStateSize};
  if (has_state_) shape.states = {.layer_count = 1, .size = kStateSize, .update_size = kStateSize};
  return shape;
}

// Logits are in about [-4, 4): flat enough that sampling has a choice, peaked enough that top-k and top-p
// cut. The row's own state decides most of them, so that the first layer drafts well; the entries that it
// sees decide the rest.
void HashModel::fill_logits(uint64_t own, uint64_t seen, std::span<float> out) const {
  if (share_of(mix64(own ^ mix64(seen ^ mix64(seed_)))) < error_rate_)
    own = absorb(own, 1, static_cast<int64_t>(seed_));
  for (size_t i = 0; i < out.size(); ++i) out[i] = 0.75f * noise(own, i) + 0.25f * noise(seen, i);
}

// The entries of a layer that a row sees.
class HashModel::View {
 public:
  View(const ForwardBatch& batch, KvCache& cache, int64_t layer)
      : batch_(batch), cache_(cache), layer_(layer) {}

  float* at_slot(int64_t slot) const {
    return reinterpret_cast<float*>(cache_.keys(layer_) + slot * cache_.shape().row_bytes());
  }

  uint64_t seen_by(size_t row) const {
    const auto sequence = static_cast<size_t>(batch_.sequences[row]);
    const int32_t* pages = batch_.pages.data() + batch_.page_begin[sequence];
    const auto page_size = static_cast<int64_t>(cache_.shape().page_size);
    uint64_t hash = 0;
    const auto see = [&](int64_t entry) {
      const float* kv = at_slot(pages[entry / page_size] * page_size + entry % page_size);
      hash = absorb(hash, State{kv[0], kv[1]});
    };
    for (int32_t entry = 0; entry < batch_.prefix_len[row]; ++entry) see(entry);
    for (int32_t t = batch_.tail_begin[row]; t < batch_.tail_begin[row + 1]; ++t)
      see(batch_.tails[static_cast<size_t>(t)]);
    return hash;
  }

 private:
  const ForwardBatch& batch_;
  KvCache& cache_;
  int64_t layer_;
};

// Fills states_ for all rows.
void HashModel::run_first_layer(const ForwardBatch& batch, KvCache& cache) {
  const View layer(batch, cache, 0);
  states_.resize(batch.tokens.size() * kStateSize);
  std::vector<uint8_t> resumes(batch.tokens.size(), 0);
  for (size_t i = 0; i < batch.resumed_rows.size(); ++i) {
    const auto row = static_cast<size_t>(batch.resumed_rows[i]);
    resumes[row] = 1;
    std::copy_n(batch.resumed_states.data() + i * kStateSize, kStateSize, states_.data() + row * kStateSize);
  }
  for (size_t row = 0; row < batch.tokens.size(); ++row) {
    if (resumes[row] != 0) continue;
    float* entry = layer.at_slot(batch.slots[row]);
    entry[0] = static_cast<float>(batch.tokens[row]);
    entry[1] = static_cast<float>(batch.positions[row]);
  }
  for (size_t row = 0; row < batch.tokens.size(); ++row) {
    if (resumes[row] != 0) continue;
    const State state = state_of(layer.seen_by(row));
    states_[row * kStateSize] = state.low;
    states_[row * kStateSize + 1] = state.high;
  }
}

// Fills after_ for all rows. An update is token and position.
void HashModel::run_recurrent_layer(const ForwardBatch& batch, KvCache& cache) {
  StateStore& store = cache.states();
  rows_.resize(batch.tokens.size());
  std::iota(rows_.begin(), rows_.end(), 0);
  after_.resize(rows_.size() * kStateSize);
  plan_.build(batch, rows_, store);
  const LayerStates layer(store, cache.host_states(), 0);
  for (const StateSequence& sequence : plan_.sequences()) {
    float* stored = layer.state(sequence);
    layer.for_each_committed(sequence, [&](const float* update) {
      write_state(next(read_state(stored), read_state(update)), stored);
    });
    std::vector<State> states;  // after each node
    for (const StateNode& node : sequence.nodes) {
      State update;
      if (node.row == StateNode::kOtherPass) {
        update = read_state(layer.update(sequence, node.update));
      } else {
        const auto row = static_cast<size_t>(node.row);
        update = {static_cast<float>(batch.tokens[row]), static_cast<float>(batch.positions[row])};
        if (node.update != StateNode::kNotKept) write_state(update, layer.update(sequence, node.update));
      }
      const State before = node.parent == StateNode::kCommitted ? read_state(stored)
                                                                : states[static_cast<size_t>(node.parent)];
      states.push_back(next(before, update));
      if (node.row != StateNode::kOtherPass)
        write_state(states.back(), after_.data() + node.row * kStateSize);
    }
    if (sequence.is_chain && states.size() > 1) write_state(states[states.size() - 2], stored);
  }
  plan_.note_applied(0, store);
}

std::span<const float> HashModel::forward(const ForwardBatch& batch, KvCache& cache) {
  OUTRIDER_CHECK(batch.resumed_rows.empty() || batch.resume_layer == 1);
  run_first_layer(batch, cache);
  if (has_state_) run_recurrent_layer(batch, cache);
  const View layer(batch, cache, 1);
  for (size_t row = 0; row < batch.tokens.size(); ++row)
    std::copy_n(states_.data() + row * kStateSize, kStateSize, layer.at_slot(batch.slots[row]));
  const auto vocab = static_cast<size_t>(config_.vocab_size);
  logits_.resize(batch.logits_rows.size() * vocab);
  for (size_t i = 0; i < batch.logits_rows.size(); ++i) {
    const auto row = static_cast<size_t>(batch.logits_rows[i]);
    const State state{states_[row * kStateSize], states_[row * kStateSize + 1]};
    uint64_t seen = layer.seen_by(row);
    if (has_state_) seen = absorb(seen, read_state(after_.data() + row * kStateSize));
    fill_logits(absorb(0, state), seen, std::span(logits_).subspan(i * vocab, vocab));
  }
  return logits_;
}

SubsetOutput HashModel::forward_subset(const ForwardBatch& batch, KvCache& cache, const LayerSubset&) {
  OUTRIDER_CHECK(batch.logits_rows.size() == batch.tokens.size());
  run_first_layer(batch, cache);
  const auto vocab = static_cast<size_t>(config_.vocab_size);
  logits_.resize(batch.tokens.size() * vocab);
  for (size_t row = 0; row < batch.tokens.size(); ++row) {
    const State state{states_[row * kStateSize], states_[row * kStateSize + 1]};
    fill_logits(absorb(0, state), 0, std::span(logits_).subspan(row * vocab, vocab));
  }
  return {.logits = logits_, .states = states_};
}

std::vector<float> HashModel::logits_after(std::span<const TokenId> tokens) const {
  uint64_t first = 0;
  uint64_t second = 0;
  State state, recurrent;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const State entry{static_cast<float>(tokens[i]), static_cast<float>(i)};
    first = absorb(first, entry);
    recurrent = next(recurrent, entry);
    state = state_of(first);
    second = absorb(second, state);
  }
  if (has_state_) second = absorb(second, recurrent);
  std::vector<float> logits(static_cast<size_t>(config_.vocab_size));
  fill_logits(absorb(0, state), second, logits);
  return logits;
}

}  // namespace outrider
