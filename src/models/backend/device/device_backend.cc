// SPDX-License-Identifier: Apache-2.0
#include "models/backend/device/device_backend.h"

#include <algorithm>
#include <set>
#include <utility>

#include "models/backend/operation_costs.h"
#include "platform/machine_memory.h"

namespace outrider {

// While it lives launches are measured, if operations are.
class DeviceBackend::Timer {
 public:
  Timer(DeviceBackend& backend, std::string_view name, const OperationCost& cost = {})
      : backend_(backend),
        name_(name),
        cost_(cost),
        begin_(measures() ? backend.device_.record_event() : 0) {}
  ~Timer() {
    if (!measures()) return;
    backend_.measured_.push_back({name_, cost_, begin_, backend_.device_.record_event()});
    if (2 * std::ssize(backend_.measured_) >= Device::kKeptEvents - 2) backend_.settle_measured();
  }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

 private:
  bool measures() const { return backend_.profile_ != nullptr && !backend_.ops_.records(); }

  DeviceBackend& backend_;
  std::string_view name_;
  OperationCost cost_;
  int64_t begin_;
};

// Copies of rows in this machine's memory, for one operation of the host. Results go back when it ends.
class DeviceBackend::OnHost {
 public:
  explicit OnHost(DeviceBackend& backend) : backend_(backend), timer_(backend, "on the host") {
    OUTRIDER_CHECK(!backend.ops_.records());
  }
  ~OnHost() {
    for (const Copy& copy : copies_) {
      if (copy.is_result)
        backend_.device_.upload(std::as_bytes(std::span(copy.numbers)), copy.place.address());
    }
  }
  OnHost(const OnHost&) = delete;
  OnHost& operator=(const OnHost&) = delete;

  FloatAddress input(FloatAddress place, int64_t count) { return bring(place, count, false); }
  // Its old numbers are there, too.
  FloatAddress result(FloatAddress place, int64_t count) { return bring(place, count, true); }

 private:
  struct Copy {
    FloatAddress place;
    bool is_result;
    std::vector<float> numbers;
  };
  FloatAddress bring(FloatAddress place, int64_t count, bool is_result) {
    Copy& copy = copies_.emplace_back(Copy{place, is_result, std::vector<float>(static_cast<size_t>(count))});
    backend_.device_.download(place.address(), std::as_writable_bytes(std::span(copy.numbers)));
    return FloatAddress(reinterpret_cast<uintptr_t>(copy.numbers.data()));
  }

  DeviceBackend& backend_;
  Timer timer_;
  std::deque<Copy> copies_;
};

namespace {

simt::NormParts whole_rows(int64_t rows, int64_t dim, float epsilon) {
  return {.rows = static_cast<int>(rows),
          .parts = 1,
          .dim = static_cast<int>(dim),
          .x_stride = static_cast<int>(dim),
          .y_stride = static_cast<int>(dim),
          .weight_stride = 0,
          .epsilon = epsilon};
}

}  // namespace

DeviceBackend::DeviceBackend(Device& device, const ModelConfig& config, const ModelOptions& options,
                             DecoderWeights weights, const std::unordered_set<const void*>& kept)
    : device_(device),
      ranks_(device, options.part),
      embedding_{options.part.shard, config.vocab_size},
      ops_(device, &ranks_, options.pool,
           options.kernels->name == kTensorCoreProfile ? ProductProfile::kTensorCores
                                                       : ProductProfile::kPortable),
      embedding_scale_(static_cast<float>(config.scales.embedding)),
      host_(config, options, uploaded(std::move(weights), kept)),
      lists_(ops_, ranks_, embedding_) {}

DecoderWeights DeviceBackend::uploaded(DecoderWeights weights, const std::unordered_set<const void*>& kept) {
  // The output head that is the embedding, too, whose rows are read here. Modules of heads have none.
  const bool is_table = !weights.table && !weights.lm_head.parts.empty();
  const PackedMatrix* const table = is_table ? &weights.embedding() : nullptr;
  const WeightList list = weights.list();
  std::set<const Projection*> stacked;
  for (const auto& stack : list.stacks) {
    if (kept.contains(stack.front())) continue;
    ops_.upload(stack);
    stacked.insert(stack.begin(), stack.end());
  }
  for (const Projection* projection : list.projections) {
    if (kept.contains(projection)) continue;
    if (!stacked.contains(projection)) ops_.upload(*projection);
    for (const PackedMatrix& part : projection->parts) {
      if (&part != table) give_pages_back({part.data.data(), part.data.size()});
    }
  }
  if (weights.table || !weights.lm_head.parts.empty()) ops_.upload_table(weights.embedding());
  return weights;
}

DeviceBackend::~DeviceBackend() {
  for (const auto& [address, count] : allocated_) device_.release(address);
}

void DeviceBackend::repeat(const RepeatedPass& pass) {
  ranks_.check();
  lists_.run(pass);
}

void DeviceBackend::measure_into(PassProfile* profile) {
  settle_measured();
  profile_ = profile;
}

void DeviceBackend::settle_measured() {
  for (const Measured& one : measured_)
    profile_->add(one.name, one.cost, device_.ms_between(one.begin, one.end) / 1000);
  measured_.clear();
}

std::optional<double> DeviceBackend::device_copy_ms(int64_t bytes) {
  constexpr int64_t kMost = int64_t{256} << 20;  // more than any cache on a device
  const int64_t copied = bytes / 2;
  const int64_t each = std::min({copied, kMost, free_bytes().value_or(kMost) / 4});
  if (each <= 0) return 0.0;
  const DeviceBuffer from(device_, each), to(device_, each);
  const int64_t begin = device_.record_event();
  for (int64_t done = 0; done < copied; done += each)
    device_.copy(from.address(), to.address(), std::min(each, copied - done));
  return device_.ms_between(begin, device_.record_event());
}

// A new cache may take the place of an old one, which lists name.
std::unique_ptr<KvStorage> DeviceBackend::make_storage(const KvShape& shape) {
  ops_.count_move();
  return std::make_unique<DevicePages>(device_, shape);
}

FloatAddress DeviceBackend::allocate(int64_t count) {
  const DeviceAddress address =
      device_.allocate(std::max<int64_t>(count, 1) * static_cast<int64_t>(sizeof(float)));
  allocated_[address] = count;
  return FloatAddress(address);
}

void DeviceBackend::release(FloatAddress numbers) {
  const auto found = allocated_.find(numbers.address());
  if (found == allocated_.end()) return;
  ops_.count_move();
  read_numbers_.erase(read_numbers_.lower_bound(found->first),
                      read_numbers_.lower_bound((numbers + found->second).address()));
  device_.release(found->first);
  allocated_.erase(found);
}

void DeviceBackend::write(std::span<const float> numbers, FloatAddress to) {
  OUTRIDER_CHECK(!ops_.records());
  device_.upload(std::as_bytes(numbers), to.address());
}

std::span<const float> DeviceBackend::read(FloatAddress from, int64_t count) {
  if (ops_.records()) return {};
  std::vector<float>& numbers = read_numbers_[from.address()];
  numbers.resize(static_cast<size_t>(count));
  device_.download(from.address(), std::as_writable_bytes(std::span(numbers)));
  ranks_.check();
  return numbers;
}

void DeviceBackend::copy(const RowCopy& copy) {
  const Timer timer(*this, "copies");
  ops_.copy(copy);
}

void DeviceBackend::copy_strided(const StridedCopy& copy) {
  const Timer timer(*this, "copies");
  ops_.copy_strided(copy);
}

void DeviceBackend::clear(FloatAddress numbers, int64_t count) {
  ops_.launcher().fill(numbers.address(), std::byte{0}, count * static_cast<int64_t>(sizeof(float)));
}

void DeviceBackend::send_states(FloatAddress states, int64_t count) {
  const Timer timer(*this, "exchanges");
  ops_.send_states(states, count);
}

void DeviceBackend::receive_states(FloatAddress states, int64_t count) {
  const Timer timer(*this, "exchanges");
  ops_.receive_states(states, count);
}

void DeviceBackend::embed(std::span<const TokenId> tokens, FloatAddress y) {
  if (tokens.empty()) return;  // a module of a head has no table
  const Timer timer(*this, "embedding");
  const PackedMatrix& table = weights().embedding();
  ops_.embed(table, embedding_, tokens, embedding_scale_, y);
}

void DeviceBackend::add_table_rows(const TableRows& args) {
  if (ops_.records()) return ops_.add_table_rows(args);
  OnHost copies(*this);
  const int64_t count = std::ssize(args.rows) * args.table->k;
  TableRows rows = args;
  rows.x = copies.input(args.x, count);
  rows.y = copies.result(args.y, count);
  host_.add_table_rows(rows);
}

// Tables that recorded passes read are embeddings.
void DeviceBackend::look_up(const PackedMatrix& table, std::span<const int32_t> rows, FloatAddress y) {
  if (ops_.records()) return ops_.look_up(table, rows, 1.0F, y);
  OnHost copies(*this);
  host_.look_up(table, rows, copies.result(y, std::ssize(rows) * table.k));
}

void DeviceBackend::project_rows(const PackedMatrix& table, std::span<const int32_t> rows, FloatAddress x,
                                 FloatAddress y) {
  OnHost copies(*this);
  const FloatAddress inputs = copies.input(x, table.k);
  host_.project_rows(table, rows, inputs, copies.result(y, std::ssize(rows)));
}

void DeviceBackend::project(const Projection& projection, FloatAddress x, FloatAddress y, int64_t rows) {
  const Timer timer(*this, projection.name, cost_of_product(projection.parts, rows));
  ops_.project(projection, x, y, rows);
}

void DeviceBackend::normalize(FloatAddress x, const Norm& norm, FloatAddress y, int64_t rows) {
  const Timer timer(*this, "norms", cost_of_numbers(2 * rows * std::ssize(norm.weight)));
  ops_.normalize({.x = x,
                  .delta = {},
                  .y = y,
                  .kind = norm.kind,
                  .weight = norm.weight,
                  .bias = norm.bias,
                  .of = whole_rows(rows, std::ssize(norm.weight), norm.epsilon)});
}

void DeviceBackend::add_and_normalize(const AddAndNormalize& args) {
  const Timer timer(*this, "sums and norms", cost_of_numbers(4 * args.rows * args.dim));
  ops_.normalize({.x = args.x,
                  .delta = args.has_delta ? args.delta : FloatAddress(),
                  .y = args.y,
                  .kind = args.norm->kind,
                  .weight = args.norm->weight,
                  .bias = args.norm->bias,
                  .of = whole_rows(args.rows, args.dim, args.norm->epsilon)});
}

void DeviceBackend::normalize_parts(FloatAddress x, std::span<const Norm> parts, FloatAddress y,
                                    int64_t rows) {
  const auto dim = std::ssize(parts.front().weight);
  const Timer timer(*this, "norms", cost_of_numbers(2 * rows * std::ssize(parts) * dim));
  const auto width = static_cast<int>(std::ssize(parts) * dim);
  for (size_t i = 0; i < parts.size(); ++i) {
    simt::NormParts of = whole_rows(rows, dim, parts[i].epsilon);
    of.x_stride = of.y_stride = width;
    const int64_t begin = static_cast<int64_t>(i) * dim;
    ops_.normalize({.x = x + begin,
                    .delta = {},
                    .y = y + begin,
                    .kind = parts[i].kind,
                    .weight = parts[i].weight,
                    .bias = parts[i].bias,
                    .of = of});
  }
}

void DeviceBackend::activate(const Activate& args) {
  const Timer timer(*this, "activation", cost_of_numbers((args.is_gated ? 3 : 2) * args.rows * args.dim));
  ops_.activate(args);
}

void DeviceBackend::project_and_activate(const Projection& projection, FloatAddress x, const Activate& args) {
  if (!ops_.activates_with(projection, args)) return LayerBackend::project_and_activate(projection, x, args);
  const Timer timer(*this, projection.name, cost_of_product(projection.parts, args.rows));
  ops_.project_and_activate(projection, x, args);
}

void DeviceBackend::add(FloatAddress y, FloatAddress x, int64_t count) {
  const Timer timer(*this, "sums", cost_of_numbers(3 * count));
  ops_.run(KernelName::kAddRows, {.x = x, .y = y, .dim = count});
}

void DeviceBackend::scale(float factor, FloatAddress x, int64_t count) {
  const Timer timer(*this, "factors and limits", cost_of_numbers(2 * count));
  ops_.run(KernelName::kScaleNumbers, {.x = x, .y = x, .dim = count, .number = factor});
}

void DeviceBackend::gate(FloatAddress gates, FloatAddress x, int64_t count) {
  const Timer timer(*this, "activation", cost_of_numbers(3 * count));
  ops_.run(KernelName::kMultiplySigmoid, {.x = x, .y = gates, .dim = count});
}

void DeviceBackend::softcap(FloatAddress x, int64_t count, float cap) {
  const Timer timer(*this, "factors and limits", cost_of_numbers(2 * count));
  ops_.softcap(x, count, cap);
}

void DeviceBackend::clamp(float limit, FloatAddress x, int64_t count) {
  const Timer timer(*this, "factors and limits", cost_of_numbers(2 * count));
  ops_.run(KernelName::kClampNumbers, {.x = x, .y = x, .dim = count, .number = limit});
}

void DeviceBackend::gate_rows(FloatAddress gates, FloatAddress x, int64_t rows, int64_t dim) {
  const Timer timer(*this, "activation");
  ops_.run(KernelName::kGateRows,
           {.x = x, .y = gates, .rows = rows, .dim = dim, .x_stride = dim, .y_stride = 1});
}

void DeviceBackend::multiply_rows(const RowProduct& args) {
  const Timer timer(*this, "factors and limits");
  ops_.multiply_rows(args);
}

void DeviceBackend::add_silu(const AddSilu& args) {
  const Timer timer(*this, "activation");
  ops_.add_silu(args);
}

void DeviceBackend::average(const Means& args) {
  const Timer timer(*this, "sums");
  ops_.average(args);
}

void DeviceBackend::spread_columns(const Columns& args) {
  const Timer timer(*this, "columns");
  ops_.place_columns(args, FloatAddress());
}

void DeviceBackend::add_columns(const Columns& args, FloatAddress base) {
  const Timer timer(*this, "columns");
  ops_.place_columns(args, base);
}

void DeviceBackend::convolve_blocks(const Convolution& args) {
  const Timer timer(*this, "convolution");
  ops_.convolve_blocks(args);
}

void DeviceBackend::step_cells(const CellStep& args) {
  const Timer timer(*this, "cells");
  ops_.step_cells(args);
}

void DeviceBackend::rotate_and_store(const Attention& attention, const RowPlaces& places) {
  const Timer timer(*this, "RoPE and cache",
                    cost_of_numbers(2 * std::ssize(places.rows) * attention.shape->qkv_size()));
  ops_.rotate_and_store(attention, places);
}

void DeviceBackend::attend(const Attention& attention, std::span<const AttentionRow> rows, FloatAddress y) {
  const Timer timer(*this, "attention",
                    profile_ == nullptr
                        ? OperationCost{}
                        : cost_of_attention(*attention.shape, attention.cache->shape(), rows));
  ops_.attend(attention, rows, y);
}

void DeviceBackend::read_entries(const Entries& entries, FloatAddress y) {
  const Timer timer(*this, "copies");
  ops_.read_entries(entries, y);
}

void DeviceBackend::run(BlockStep& step) {
  const Timer timer(*this, step.name());
  step.run(ops_);
}

}  // namespace outrider
