// SPDX-License-Identifier: Apache-2.0
// A backend for tests with weights, rows and cached entries out of everyone's reach, as a device's are.
// Addresses of its rows are no memory, the weights that it shows are noise, and caches know its entries and
// states only by number. It computes with its own HostBackend, so that results have equal bits unless
// something is followed that is only a name.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "models/backend/backend_kinds.h"
#include "models/backend/host/host_backend.h"
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
  void save(int32_t id, int64_t updates, float* to) override { numbers_.save(id, updates, to); }
  void load(int32_t id, int64_t updates, const float* from) override { numbers_.load(id, updates, from); }
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
  void save(int64_t first_slot, int64_t count, std::byte* to) const override {
    entries_.storage().save(first_slot, count, to);
  }
  void load(int64_t first_slot, int64_t count, const std::byte* from) override {
    entries_.storage().load(first_slot, count, from);
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
  const auto spoil = [](const std::vector<float>& numbers) {
    std::ranges::fill(const_cast<std::vector<float>&>(numbers), std::numeric_limits<float>::quiet_NaN());
  };
  const WeightList list = weights.list();
  for (const Norm* norm : list.norms) {
    spoil(norm->weight);
    spoil(norm->bias);
  }
  for (const Projection* projection : list.projections) spoil(projection->bias);
  for (const std::vector<float>* numbers : list.numbers) spoil(*numbers);
}

class SeparateBackend final : public LayerBackend, private HostNames {
 public:
  // `own` and `shown` are the weights of one model, loaded twice.
  SeparateBackend(const ModelConfig& config, const ModelOptions& options, DecoderWeights own,
                  DecoderWeights shown)
      : host_(config, options, std::move(own)), shown_(std::move(shown)) {
    blank(shown_);
    host_.host().use_names(*this);
    list_parts();
  }

  const DecoderWeights& weights() const override { return shown_; }
  std::unique_ptr<KvStorage> make_storage(const KvShape& shape) override {
    return std::make_unique<SeparateStorage>(shape);
  }
  void measure_into(PassProfile* profile) override { host_.measure_into(profile); }
  void reserve(int64_t rows, int64_t logits_rows) override { host_.reserve(rows, logits_rows); }

  void reserve_product(const Projection& projection, int64_t rows) override {
    host_.reserve_product(projection, rows);
  }

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
  void copy_strided(const StridedCopy& args) override {
    StridedCopy copy = args;
    copy.from = own(args.from);
    copy.to = own(args.to);
    host_.copy_strided(copy);
  }
  void clear(FloatAddress numbers, int64_t count) override { host_.clear(own(numbers), count); }
  void send_states(FloatAddress states, int64_t count) override { host_.send_states(own(states), count); }
  void receive_states(FloatAddress states, int64_t count) override {
    host_.receive_states(own(states), count);
  }

  void embed(std::span<const TokenId> tokens, FloatAddress y) override { host_.embed(tokens, own(y)); }
  void add_table_rows(const TableRows& args) override {
    TableRows rows = args;
    rows.table = &own_part(*args.table);
    rows.x = own(args.x);
    rows.y = own(args.y);
    host_.add_table_rows(rows);
  }
  void look_up(const PackedMatrix& table, std::span<const int32_t> rows, FloatAddress y) override {
    host_.look_up(own_part(table), rows, own(y));
  }
  void project_rows(const PackedMatrix& table, std::span<const int32_t> rows, FloatAddress x,
                    FloatAddress y) override {
    host_.project_rows(own_part(table), rows, own(x), own(y));
  }
  void project(const Projection& projection, FloatAddress x, FloatAddress y, int64_t rows) override {
    host_.project(own_part(projection), own(x), own(y), rows);
  }
  void normalize(FloatAddress x, const Norm& norm, FloatAddress y, int64_t rows) override {
    host_.normalize(own(x), own_part(norm), own(y), rows);
  }
  void add_and_normalize(const AddAndNormalize& args) override {
    AddAndNormalize sum = args;
    sum.x = own(args.x);
    sum.delta = own(args.delta);
    sum.norm = &own_part(*args.norm);
    sum.y = own(args.y);
    host_.add_and_normalize(sum);
  }
  void normalize_parts(FloatAddress x, std::span<const Norm> parts, FloatAddress y, int64_t rows) override {
    std::vector<Norm> norms;
    for (const Norm& norm : parts) norms.push_back(own_part(norm));
    host_.normalize_parts(own(x), norms, own(y), rows);
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
  void add_silu(const AddSilu& args) override {
    AddSilu sum = args;
    sum.x = own(args.x);
    sum.residual = own(args.residual);
    sum.y = own(args.y);
    host_.add_silu(sum);
  }
  void average(const Means& args) override {
    Means means = args;
    means.x = own(args.x);
    means.y = own(args.y);
    host_.average(means);
  }
  void spread_columns(const Columns& args) override { host_.spread_columns(own(args)); }
  void add_columns(const Columns& args, FloatAddress base) override {
    host_.add_columns(own(args), own(base));
  }
  void convolve_blocks(const Convolution& args) override {
    Convolution convolution = args;
    convolution.base = own_numbers(args.base);
    convolution.weights = own(args.weights);
    convolution.x = own(args.x);
    host_.convolve_blocks(convolution);
  }
  void step_cells(const CellStep& args) override {
    CellStep step = args;
    for (FloatAddress* numbers : {&step.x, &step.before, &step.cells, &step.y}) *numbers = own(*numbers);
    host_.step_cells(step);
  }
  void read_entries(const Entries& entries, FloatAddress y) override { host_.read_entries(entries, own(y)); }
  void rotate_and_store(const Attention& attention, const RowPlaces& places) override {
    host_.rotate_and_store(own(attention), places);
  }
  void attend(const Attention& attention, std::span<const AttentionRow> rows, FloatAddress y) override {
    host_.attend(own(attention), rows, own(y));
  }
  void run(BlockStep& step) override { host_.run(step); }

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

  // This backend's own weights have equal parts in the same order.
  void list_parts() {
    const DecoderWeights& weights = host_.weights();
    const WeightList shown = shown_.list(), own = weights.list();
    for (size_t i = 0; i < own.projections.size(); ++i) parts_[shown.projections[i]] = own.projections[i];
    for (size_t i = 0; i < own.norms.size(); ++i) parts_[shown.norms[i]] = own.norms[i];
    for (size_t i = 0; i < own.numbers.size(); ++i) parts_[shown.numbers[i]->data()] = own.numbers[i]->data();
    for (size_t i = 0; i < weights.tables().size(); ++i) parts_[shown_.tables()[i]] = weights.tables()[i];
    for (size_t i = 0; i < weights.layers.size(); ++i) {
      parts_[shown_.layers[i].mixer.get()] = weights.layers[i].mixer.get();
      parts_[shown_.layers[i].mlp.get()] = weights.layers[i].mlp.get();
    }
  }
  template <typename Part>
  const Part& own_part(const Part& shown) const {
    const auto found = parts_.find(&shown);
    return found == parts_.end() ? take(shown) : *static_cast<const Part*>(found->second);
  }
  std::span<const float> own_numbers(std::span<const float> shown) const {
    if (shown.empty()) return shown;
    const auto found = parts_.find(shown.data());
    if (found != parts_.end()) return {static_cast<const float*>(found->second), shown.size()};
    const auto bytes = take_bytes(std::as_bytes(shown));
    return {reinterpret_cast<const float*>(bytes.data()), shown.size()};
  }

  // Weights of draft heads are taken when they are first used: from then on their places hold noise.
  const Block& take(const Block& shown) const { return shown; }
  const Norm& take(const Norm& shown) const {
    if (shown.empty()) return shown;
    Norm& own = norms_.emplace_back(shown);
    for (const auto& [from, to] : {std::pair(&shown.weight, &own.weight), {&shown.bias, &own.bias}}) {
      const std::span<const float> numbers = own_numbers(*from);
      to->assign(numbers.begin(), numbers.end());
    }
    parts_[&shown] = &own;
    return own;
  }
  const PackedMatrix& take(const PackedMatrix& shown) const {
    const auto bytes = take_bytes({shown.data.data(), static_cast<size_t>(shown.bytes())});
    parts_[&shown] = &matrices_.emplace_back(matrix_of(shown, bytes));
    return matrices_.back();
  }
  const Projection& take(const Projection& shown) const {
    Projection& own = projections_.emplace_back();
    own.name = shown.name;
    own.n = shown.n;
    own.k = shown.k;
    const std::span<const float> bias = own_numbers(shown.bias);
    own.bias.assign(bias.begin(), bias.end());
    for (const PackedMatrix& part : shown.parts)
      own.parts.push_back(matrix_of(part, take_bytes({part.data.data(), static_cast<size_t>(part.bytes())})));
    parts_[&shown] = &own;
    return own;
  }
  static PackedMatrix matrix_of(const PackedMatrix& like, std::span<const std::byte> bytes) {
    return {.layout = like.layout,
            .inputs = like.inputs,
            .dtype = like.dtype,
            .n = like.n,
            .k = like.k,
            .panel_features = like.panel_features,
            .panel_bytes = like.panel_bytes,
            .data = Buffer::borrowed(bytes)};
  }
  std::span<const std::byte> take_bytes(std::span<const std::byte> shown) const {
    const auto [found, is_new] = bytes_.try_emplace(shown.data());
    if (is_new) {
      found->second = Buffer(shown.size());
      std::ranges::copy(shown, found->second.data());
      std::ranges::fill(std::span(const_cast<std::byte*>(shown.data()), shown.size()), std::byte{0xff});
    }
    return {found->second.data(), shown.size()};
  }

  float* at(FloatAddress numbers) const override { return reinterpret_cast<float*>(own(numbers).address()); }
  const Block& own(const Block& shown) const override { return own_part(shown); }
  HostStates& states(StateStorage& storage) const override {
    return static_cast<SeparateStates&>(storage).numbers();
  }

  Columns own(const Columns& shown) const {
    Columns columns = shown;
    columns.x = own(shown.x);
    columns.y = own(shown.y);
    return columns;
  }
  Attention own(const Attention& shown) const {
    Attention attention = shown;
    for (auto* numbers : {&attention.q_norm, &attention.k_norm, &attention.v_norm, &attention.sinks})
      *numbers = own_numbers(*numbers);
    attention.cache = &static_cast<SeparateStorage&>(shown.cache->storage()).entries();
    attention.qkv = own(shown.qkv);
    return attention;
  }

  HostBackend host_;
  DecoderWeights shown_;
  mutable std::map<const void*, const void*> parts_;  // of shown weights to own ones
  mutable std::deque<Norm> norms_;                    // taken
  mutable std::deque<PackedMatrix> matrices_;
  mutable std::deque<Projection> projections_;
  mutable std::map<const std::byte*, Buffer> bytes_;  // taken, by their shown place
  // Rows of all such backends, by the address that is shown.
  static inline uintptr_t next_ = kGap;
  static inline std::map<uintptr_t, Rows> rows_;
};

// Makes the backend of a BackendKind.
inline Result<std::unique_ptr<LayerBackend>> make_separate_backend(const ModelConfig& config,
                                                                   const ModelOptions& options,
                                                                   const LoadWeights& load) {
  OUTRIDER_TRY(DecoderWeights own, load());
  OUTRIDER_TRY(DecoderWeights shown, load());
  return std::unique_ptr<LayerBackend>(
      std::make_unique<SeparateBackend>(config, options, std::move(own), std::move(shown)));
}

// A model on such a backend, with its cache.
class SeparateModel {
 public:
  explicit SeparateModel(const std::string& name) : pool_(2) {
    auto file = open_model(model_data(name));
    EXPECT_TRUE(file.ok()) << file.error().message;
    const ModelOptions options{.kernels = *select_kernels(""), .pool = &pool_, .weights = {}};
    auto backend =
        make_separate_backend(file->config, options, [&] { return load_decoder_weights(*file, options); });
    EXPECT_TRUE(backend.ok());
    model_ = std::make_unique<Decoder>(file->config, options, std::move(*backend));
    const KvShape shape = small_cache_shape(*model_);
    cache_ = std::make_unique<KvCache>(shape, KvOptions{.poison = true}, model_->make_storage(shape));
  }

  Model& model() { return *model_; }
  KvCache& cache() { return *cache_; }

 private:
  ThreadPool pool_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<KvCache> cache_;
};

}  // namespace outrider
