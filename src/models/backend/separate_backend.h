// SPDX-License-Identifier: Apache-2.0
// A backend for tests whose weights, rows and cached entries are out of everyone's reach, as a device's are:
// addresses of its rows are no memory, the weights that it shows are noise, and caches know its entries and
// states by number alone. It computes with a HostBackend of its own, so that results have equal bits unless
// something is followed that is only a name.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "models/backend/host_backend.h"
#include "models/decoder.h"
#include "models/model_test_data.h"

namespace outrider {

// States that are no HostStates.
class SeparateStates final : public StateStorage {
 public:
  explicit SeparateStates(const StateShape& shape) : numbers_(shape) {}

  void add() override { numbers_.add(); }
  void clear(int32_t id) override { numbers_.clear(id); }
  void add_updates(int32_t id, int64_t kept, int64_t count) override {
    numbers_.add_updates(id, kept, count);
  }
  void copy_update(int32_t id, int64_t from, int64_t to) override { numbers_.copy_update(id, from, to); }
  void copy(int32_t from, int64_t updates, int32_t to) override { numbers_.copy(from, updates, to); }
  void poison_updates(int32_t id, int64_t first, int64_t count) override {
    numbers_.poison_updates(id, first, count);
  }
  HostStates& numbers() { return numbers_; }

 private:
  HostStates numbers_;
};

// Entries that keys() and values() of the cache do not reach, and such states.
class SeparateStorage final : public KvStorage {
 public:
  explicit SeparateStorage(const KvShape& shape) : entries_(shape), states_(shape.states) {}

  void move(const KvMove& move) override { entries_.repeat(move); }
  void poison(int64_t first_slot, int64_t count) override { entries_.storage().poison(first_slot, count); }
  void clear(int64_t first_slot, int64_t count) override { entries_.storage().clear(first_slot, count); }
  void read(const KvRow& row, float* out, int64_t stride) const override {
    entries_.storage().read(row, out, stride);
  }
  StateStorage& states() override { return states_; }
  KvCache& entries() { return entries_; }

 private:
  KvCache entries_;  // its slots; it has no sequences
  SeparateStates states_;
};

// Every number of the weights becomes NaN or noise; names and sizes stay.
inline void blank(DecoderWeights& weights) {
  std::ranges::fill(weights.memory.buffer.as<std::byte>(), std::byte{0xff});
  const auto spoil = [](std::vector<float>& numbers) {
    std::ranges::fill(numbers, std::numeric_limits<float>::quiet_NaN());
  };
  spoil(weights.final_norm.weight);
  for (DecoderLayer& layer : weights.layers) {
    for (Norm* norm : {&layer.attention_norm, &layer.attention_output_norm, &layer.mlp_norm,
                       &layer.mlp_output_norm, &layer.input.norm}) {
      spoil(norm->weight);
      spoil(norm->bias);
    }
    for (auto* numbers : {&layer.q_norm, &layer.k_norm, &layer.sinks, &layer.qkv.bias, &layer.gate_up.bias,
                          &layer.down.bias, &layer.attention_output.bias})
      spoil(*numbers);
  }
}

class SeparateBackend final : public LayerBackend {
 public:
  // `own` and `shown` are the weights of one model, loaded twice.
  SeparateBackend(const ModelConfig& config, const ModelOptions& options, DecoderWeights own,
                  DecoderWeights shown)
      : host_(config, options, std::move(own)), shown_(std::move(shown)) {
    blank(shown_);
  }

  const DecoderWeights& weights() const override { return shown_; }
  void measure_into(PassProfile* profile) override { host_.measure_into(profile); }
  void reserve(int64_t rows, int64_t logits_rows) override { host_.reserve(rows, logits_rows); }

  FloatAddress allocate(int64_t count) override {
    const FloatAddress address(next_);
    next_ += static_cast<uintptr_t>(count) * sizeof(float) + kGap;
    rows_.emplace(address.address(), Rows{host_.allocate(count), count});
    return address;
  }
  void release(FloatAddress numbers) override {
    const auto found = rows_.find(numbers.address());
    if (found == rows_.end()) return;
    host_.release(found->second.data);
    rows_.erase(found);
  }
  void write(std::span<const float> numbers, FloatAddress to) override { host_.write(numbers, own(to)); }
  std::span<const float> read(FloatAddress from, int64_t count) override {
    return host_.read(own(from), count);
  }
  void copy(const RowCopy& args) override {
    RowCopy copy = args;
    copy.from = own(args.from);
    copy.to = own(args.to);
    host_.copy(copy);
  }
  void send_states(FloatAddress states, int64_t count) override { host_.send_states(own(states), count); }
  void receive_states(FloatAddress states, int64_t count) override {
    host_.receive_states(own(states), count);
  }

  void embed(std::span<const TokenId> tokens, FloatAddress y) override { host_.embed(tokens, own(y)); }
  void add_table_rows(const TableRows& args) override {
    TableRows rows = args;
    rows.table = &own(*args.table);
    rows.x = own(args.x);
    rows.y = own(args.y);
    host_.add_table_rows(rows);
  }
  void project(const Projection& projection, FloatAddress x, FloatAddress y, int64_t rows) override {
    host_.project(own(projection), own(x), own(y), rows);
  }
  void normalize(FloatAddress x, const Norm& norm, FloatAddress y, int64_t rows) override {
    host_.normalize(own(x), own(norm), own(y), rows);
  }
  void add_and_normalize(const AddAndNormalize& args) override {
    AddAndNormalize sum = args;
    sum.x = own(args.x);
    sum.delta = own(args.delta);
    sum.norm = &own(*args.norm);
    sum.y = own(args.y);
    host_.add_and_normalize(sum);
  }
  void activate(const Activate& args) override {
    Activate activation = args;
    activation.x = own(args.x);
    activation.y = own(args.y);
    host_.activate(activation);
  }
  void add(FloatAddress y, FloatAddress x, int64_t count) override { host_.add(own(y), own(x), count); }
  void scale(float factor, FloatAddress x, int64_t count) override { host_.scale(factor, own(x), count); }
  void gate(FloatAddress gates, FloatAddress x, int64_t count) override {
    host_.gate(own(gates), own(x), count);
  }
  void softcap(FloatAddress x, int64_t count, float cap) override { host_.softcap(own(x), count, cap); }
  void clamp(float limit, FloatAddress x, int64_t count) override { host_.clamp(limit, own(x), count); }
  void gate_rows(FloatAddress gates, FloatAddress x, int64_t rows, int64_t dim) override {
    host_.gate_rows(own(gates), own(x), rows, dim);
  }
  void multiply_rows(const RowProduct& args) override {
    RowProduct product = args;
    product.x = own(args.x);
    product.factors = own(args.factors);
    host_.multiply_rows(product);
  }
  void rotate_and_store(const Attention& attention, const RowPlaces& places) override {
    host_.rotate_and_store(own(attention), places);
  }
  void attend(const Attention& attention, std::span<const AttentionRow> rows, FloatAddress y) override {
    host_.attend(own(attention), rows, own(y));
  }
  void make_latent_queries(const LatentAttention& attention, FloatAddress x, FloatAddress qkv,
                           int64_t rows) override {
    host_.make_latent_queries(own(attention), own(x), own(qkv), rows);
  }
  void read_latent_values(const LatentAttention& attention, FloatAddress attended, FloatAddress y,
                          int64_t rows) override {
    host_.read_latent_values(own(attention), own(attended), own(y), rows);
  }
  void recur(const Recurrence& args) override {
    Recurrence recurrence = args;
    recurrence.weights = &own(*args.weights);
    recurrence.storage = &static_cast<SeparateStates&>(*args.storage).numbers();
    recurrence.projected = own(args.projected);
    recurrence.y = own(args.y);
    host_.recur(recurrence);
  }
  int64_t run_experts(const Experts& args) override {
    Experts experts = args;
    experts.router = own(args.router);
    experts.x = own(args.x);
    experts.y = own(args.y);
    return host_.run_experts(experts);
  }

 private:
  static constexpr uintptr_t kGap = 4096;
  struct Rows {
    FloatAddress data;
    int64_t count = 0;
  };

  FloatAddress own(FloatAddress shown) const {
    const auto after = rows_.upper_bound(shown.address());
    if (after == rows_.begin()) return {};  // rows that no pass of this model needs
    const auto& [begin, rows] = *std::prev(after);
    const auto offset = static_cast<int64_t>((shown.address() - begin) / sizeof(float));
    EXPECT_LE(offset, rows.count);
    return rows.data + offset;
  }

  // This backend's own weights have the part at the same place. An empty norm is no part of them.
  template <typename Part>
  const Part& own(const Part& shown) const {
    const DecoderWeights& weights = host_.weights();
    const std::pair<std::span<const std::byte>, const std::byte*> places[] = {
        {std::as_bytes(std::span(shown_.layers)), std::as_bytes(std::span(weights.layers)).data()},
        {std::as_bytes(std::span(&shown_, 1)), std::as_bytes(std::span(&weights, 1)).data()}};
    for (const auto& [from, to] : places) {
      const auto offset = reinterpret_cast<uintptr_t>(&shown) - reinterpret_cast<uintptr_t>(from.data());
      if (offset < from.size()) return *reinterpret_cast<const Part*>(to + offset);
    }
    return shown;
  }

  Attention own(const Attention& shown) const {
    Attention attention = shown;
    attention.weights = &own(*shown.weights);
    attention.cache = &static_cast<SeparateStorage&>(shown.cache->storage()).entries();
    attention.qkv = own(shown.qkv);
    return attention;
  }

  HostBackend host_;
  DecoderWeights shown_;
  uintptr_t next_ = kGap;
  std::map<uintptr_t, Rows> rows_;  // by the address that is shown
};

// A model on such a backend, with its cache.
class SeparateModel {
 public:
  explicit SeparateModel(const std::string& name) : pool_(2) {
    auto file = open_model(model_data(name));
    EXPECT_TRUE(file.ok()) << file.error().message;
    const ModelOptions options{.kernels = *select_kernels(""), .pool = &pool_, .weights = {}};
    auto own = load_decoder_weights(*file, options);
    auto shown = load_decoder_weights(*file, options);
    EXPECT_TRUE(own.ok() && shown.ok());
    model_ = std::make_unique<Decoder>(
        file->config, options,
        std::make_unique<SeparateBackend>(file->config, options, std::move(*own), std::move(*shown)));
    const KvShape shape = small_cache_shape(*model_);
    cache_ =
        std::make_unique<KvCache>(shape, KvOptions{.poison = true}, std::make_unique<SeparateStorage>(shape));
  }

  Model& model() { return *model_; }
  KvCache& cache() { return *cache_; }

 private:
  ThreadPool pool_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<KvCache> cache_;
};

}  // namespace outrider
