// SPDX-License-Identifier: Apache-2.0
#include "models/backend/split/split_backend.h"

#include <algorithm>
#include <utility>

#include "models/backend/device/make_backends.h"

namespace outrider {
namespace {

// The numbers from the first to the last of rows that are `stride` apart.
int64_t span_of(int64_t rows, int64_t stride, int64_t dim) {
  return rows == 0 ? 0 : (rows - 1) * stride + dim;
}

int64_t span_of(std::span<const int32_t> rows, int64_t stride, int64_t dim) {
  return rows.empty() ? 0 : span_of(*std::ranges::max_element(rows) + 1, stride, dim);
}

}  // namespace

KeptWeights kept_weights(const DecoderWeights& weights, const Placement& placement) {
  KeptWeights kept;
  for (int64_t i = 0; i < std::ssize(weights.layers); ++i) {
    const LayerBlocks& layer = weights.layers[static_cast<size_t>(i)];
    WeightList list;
    layer.list(list);
    if (i < placement.host_layers) {
      kept.insert(list.projections.begin(), list.projections.end());
      kept.insert(list.norms.begin(), list.norms.end());
    }
    if (i < placement.host_experts) kept.insert(list.choices.begin(), list.choices.end());
  }
  return kept;
}

SplitBackend::SplitBackend(Device& device, const ModelConfig& config, const ModelOptions& options,
                           DecoderWeights weights, KeptWeights kept)
    : token_size_(config.token_size()),
      kept_(std::move(kept)),
      host_layers_(options.placement.host_layers),
      device_(device, config, options, std::move(weights), kept_),
      host_(device_.host()),
      rows_(device) {}

std::unique_ptr<KvStorage> SplitBackend::make_own_storage(const KvShape& shape) {
  HostCacheLayers on_host;
  for (int64_t i = 0; i < host_layers_; ++i) {
    const BlockCache cache = weights().layers[static_cast<size_t>(i)].mixer->cache();
    on_host.entries += cache.heads ? 1 : 0;
    on_host.states += cache.state_size > 0 ? 1 : 0;
  }
  if (on_host.entries == 0 && on_host.states == 0) return make_storage(shape);
  return std::make_unique<SplitPages>(device_.launcher().device(), shape, on_host);
}

void SplitBackend::measure_into(PassProfile* profile) {
  device_.measure_into(profile);
  host_.measure_into(profile);
}

FloatAddress SplitBackend::allocate(int64_t count) {
  const FloatAddress rows = device_.allocate(count);
  rows_.add(rows, count);
  return rows;
}

void SplitBackend::release(FloatAddress numbers) {
  rows_.remove(numbers);
  device_.release(numbers);
}

void SplitBackend::write(std::span<const float> numbers, FloatAddress to) {
  device_.write(numbers, side(/*is_host=*/false).write(to, std::ssize(numbers)));
}

std::span<const float> SplitBackend::read(FloatAddress from, int64_t count) {
  if (!rows_.has(from)) return device_.read(from, count);
  return host_.read(side(/*is_host=*/true).read(from, count), count);
}

void SplitBackend::copy(const RowCopy& args) {
  if (args.rows.empty() || args.dim == 0) return;
  const int64_t read = span_of(args.rows, args.from_stride, args.dim);
  const int64_t written = span_of(std::ssize(args.rows), args.to_stride, args.dim);
  const Side at = side_of(args.from, read);
  RowCopy copy = args;
  copy.from = at.read(args.from, read);
  copy.to = args.to_stride == args.dim ? at.write(args.to, written) : at.change(args.to, written);
  at->copy(copy);
}

void SplitBackend::copy_strided(const StridedCopy& args) {
  if (args.rows == 0 || args.dim == 0) return;
  const int64_t read = span_of(args.rows, args.from_stride, args.dim);
  const int64_t written = span_of(args.rows, args.to_stride, args.dim);
  const Side at = side_of(args.from, read);
  StridedCopy copy = args;
  copy.from = at.read(args.from, read);
  copy.to = args.to_stride == args.dim ? at.write(args.to, written) : at.change(args.to, written);
  at->copy_strided(copy);
}

void SplitBackend::clear(FloatAddress numbers, int64_t count) {
  device_.clear(side(/*is_host=*/false).write(numbers, count), count);
}

// One rank has the whole network.
void SplitBackend::send_states(FloatAddress, int64_t) { OUTRIDER_CHECK(false); }
void SplitBackend::receive_states(FloatAddress, int64_t) { OUTRIDER_CHECK(false); }

void SplitBackend::embed(std::span<const TokenId> tokens, FloatAddress y) {
  device_.embed(tokens, side(/*is_host=*/false).write(y, std::ssize(tokens) * token_size_));
}

void SplitBackend::add_table_rows(const TableRows& args) {
  const int64_t count = std::ssize(args.rows) * args.table->k;
  const Side at = side_of_table(args.y);
  TableRows rows = args;
  rows.x = at.read(args.x, count);
  rows.y = at.write(args.y, count);
  at->add_table_rows(rows);
}

void SplitBackend::look_up(const PackedMatrix& table, std::span<const int32_t> rows, FloatAddress y) {
  const Side at = side_of_table(y);
  at->look_up(table, rows, at.write(y, std::ssize(rows) * table.k));
}

void SplitBackend::project_rows(const PackedMatrix& table, std::span<const int32_t> rows, FloatAddress x,
                                FloatAddress y) {
  const Side at = side(rows_.has(x) && rows_.has(y));
  const FloatAddress input = at.read(x, table.k);
  at->project_rows(table, rows, input, at.write(y, std::ssize(rows)));
}

void SplitBackend::project(const Projection& projection, FloatAddress x, FloatAddress y, int64_t rows) {
  if (rows == 0) return;
  const Side at = side_of(&projection);
  const FloatAddress input = at.read(x, rows * projection.k);
  at->project(projection, input, at.write(y, rows * projection.n), rows);
}

void SplitBackend::normalize(FloatAddress x, const Norm& norm, FloatAddress y, int64_t rows) {
  const int64_t count = rows * std::ssize(norm.weight);
  const Side at = side_of(norm, x, count);
  const FloatAddress input = at.read(x, count);
  at->normalize(input, norm, at.write(y, count), rows);
}

void SplitBackend::add_and_normalize(const AddAndNormalize& args) {
  const int64_t count = args.rows * args.dim;
  const Side at = side_of(*args.norm, args.has_delta ? args.delta : args.x, count);
  AddAndNormalize sum = args;
  if (args.has_delta) sum.delta = at.read(args.delta, count);
  sum.x = args.has_delta ? at.change(args.x, count) : at.read(args.x, count);
  if (!args.norm->empty()) sum.y = at.write(args.y, count);
  at->add_and_normalize(sum);
}

void SplitBackend::normalize_parts(FloatAddress x, std::span<const Norm> parts, FloatAddress y,
                                   int64_t rows) {
  const int64_t count = rows * std::ssize(parts) * std::ssize(parts.front().weight);
  const Side at = side_of(parts.front(), x, count);
  const FloatAddress input = at.read(x, count);
  at->normalize_parts(input, parts, at.write(y, count), rows);
}

void SplitBackend::activate(const Activate& args) {
  const int64_t count = args.rows * args.dim, inputs = args.is_gated ? 2 * count : count;
  const Side at = side_of(args.x, inputs);
  Activate placed = args;
  placed.x = at.read(args.x, inputs);
  placed.y = at.write(args.y, count);
  at->activate(placed);
}

void SplitBackend::project_and_activate(const Projection& projection, FloatAddress x, const Activate& args) {
  const Side at = side_of(&projection);
  const FloatAddress input = at.read(x, args.rows * projection.k);
  Activate placed = args;
  placed.x = at.write(args.x, args.rows * projection.n);
  placed.y = at.write(args.y, args.rows * args.dim);
  at->project_and_activate(projection, input, placed);
}

void SplitBackend::add(FloatAddress y, FloatAddress x, int64_t count) {
  const Side at = side_of(x, count);
  const FloatAddress added = at.read(y, count);
  at->add(added, at.change(x, count), count);
}

void SplitBackend::scale(float factor, FloatAddress x, int64_t count) {
  const Side at = side_of(x, count);
  at->scale(factor, at.change(x, count), count);
}

void SplitBackend::gate(FloatAddress gates, FloatAddress x, int64_t count) {
  const Side at = side_of(x, count);
  const FloatAddress factors = at.read(gates, count);
  at->gate(factors, at.change(x, count), count);
}

void SplitBackend::softcap(FloatAddress x, int64_t count, float cap) {
  const Side at = side_of(x, count);
  at->softcap(at.change(x, count), count, cap);
}

void SplitBackend::clamp(float limit, FloatAddress x, int64_t count) {
  const Side at = side_of(x, count);
  at->clamp(limit, at.change(x, count), count);
}

void SplitBackend::gate_rows(FloatAddress gates, FloatAddress x, int64_t rows, int64_t dim) {
  const Side at = side_of(x, rows * dim);
  const FloatAddress factors = at.read(gates, rows);
  at->gate_rows(factors, at.change(x, rows * dim), rows, dim);
}

void SplitBackend::multiply_rows(const RowProduct& args) {
  if (args.rows.empty()) return;
  const int64_t count = std::ssize(args.rows) * args.dim;
  const Side at = side_of(args.x, count);
  RowProduct product = args;
  product.factors = at.read(args.factors, span_of(args.rows, args.stride, args.dim));
  product.x = at.change(args.x, count);
  at->multiply_rows(product);
}

void SplitBackend::add_silu(const AddSilu& args) {
  const int64_t count = args.rows * args.dim;
  const Side at = side_of(args.x, args.groups * count);
  AddSilu sum = args;
  sum.x = at.read(args.x, args.groups * count);
  sum.residual = at.read(args.residual, count);
  sum.y = at.write(args.y, args.groups * count);
  at->add_silu(sum);
}

void SplitBackend::average(const Means& args) {
  const int64_t count = args.rows * args.dim;
  const Side at = side_of(args.x, args.count * count);
  Means means = args;
  means.x = at.read(args.x, args.count * count);
  means.y = at.write(args.y, count);
  at->average(means);
}

void SplitBackend::spread_columns(const Columns& args) {
  const Side at = side_of(args.x, args.rows * args.count);
  Columns columns = args;
  columns.x = at.read(args.x, args.rows * args.count);
  columns.y = at.write(args.y, args.rows * args.width);
  at->spread_columns(columns);
}

void SplitBackend::add_columns(const Columns& args, FloatAddress base) {
  const Side at = side_of(args.x, args.rows * args.count);
  Columns columns = args;
  columns.x = at.read(args.x, args.rows * args.count);
  base = at.read(base, args.base_rows * args.width);
  columns.y = at.write(args.y, args.rows * args.width);
  at->add_columns(columns, base);
}

void SplitBackend::convolve_blocks(const Convolution& args) {
  const int64_t of_row = args.taps * (args.dim / args.group);
  const Side at = side_of(args.x, args.rows * args.dim);
  Convolution convolution = args;
  convolution.weights = at.read(args.weights, span_of(args.rows, args.weight_stride, of_row));
  convolution.x = at.change(args.x, args.rows * args.dim);
  at->convolve_blocks(convolution);
}

void SplitBackend::step_cells(const CellStep& args) {
  const int64_t count = args.rows * args.dim;
  const Side at = side_of(args.x, 3 * count);
  CellStep step = args;
  step.x = at.read(args.x, 3 * count);
  step.before = at.read(args.before, count);
  step.cells = at.write(args.cells, count);
  step.y = at.write(args.y, count);
  at->step_cells(step);
}

SplitBackend::Side SplitBackend::side_of(const KvCache& cache, int64_t layer) {
  const auto* pages = dynamic_cast<const SplitPages*>(&cache.storage());
  return side(pages != nullptr && pages->is_on_host(layer));
}

KvCache* SplitBackend::cache_at(const Side& at, KvCache* cache) {
  auto* pages = dynamic_cast<SplitPages*>(&cache->storage());
  if (pages == nullptr) return cache;
  return at.is_host() ? &pages->host() : &pages->device();
}

void SplitBackend::rotate_and_store(const Attention& attention, const RowPlaces& places) {
  const Side at = side_of(*attention.cache, attention.layer);
  Attention placed = attention;
  placed.qkv = at.change(attention.qkv, std::ssize(places.rows) * attention.shape->qkv_size());
  placed.cache = cache_at(at, attention.cache);
  at->rotate_and_store(placed, places);
}

void SplitBackend::attend(const Attention& attention, std::span<const AttentionRow> rows, FloatAddress y) {
  const Side at = side_of(*attention.cache, attention.layer);
  Attention placed = attention;
  placed.qkv = at.read(attention.qkv, std::ssize(rows) * attention.shape->qkv_size());
  placed.cache = cache_at(at, attention.cache);
  at->attend(placed, rows, at.write(y, std::ssize(rows) * attention.shape->q_size()));
}

// Layers of both sides are read one by one.
void SplitBackend::read_entries(const Entries& entries, FloatAddress y) {
  const KvShape& shape = entries.cache->shape();
  const KvHeads heads = shape.heads(entries.layers.begin);
  const auto slots = std::ssize(entries.slots);
  const int64_t of_layer = (shape.values_are_keys ? 1 : 2) * heads.count * heads.dim;
  const int64_t layers = entries.layers.end - entries.layers.begin;
  auto* cache = const_cast<KvCache*>(entries.cache);
  const Side first = side_of(*cache, entries.layers.begin), last = side_of(*cache, entries.layers.end - 1);
  if (first.is_host() == last.is_host()) {
    const Entries placed{cache_at(first, cache), entries.layers, entries.slots};
    return first->read_entries(placed, first.write(y, slots * layers * of_layer));
  }
  const FloatAddress read = allocate(slots * of_layer);
  for (int64_t i = 0; i < layers; ++i) {
    const int64_t layer = entries.layers.begin + i;
    read_entries({entries.cache, {layer, layer + 1}, entries.slots}, read);
    copy_strided({read, of_layer, y + i * of_layer, layers * of_layer, slots, of_layer});
  }
  release(read);
}

void SplitBackend::run(BlockStep& step) {
  const StepNames names = step.names();
  const Side at = side_of(names.weights);
  for (const StepNames::Rows& rows : names.rows) *rows.at = at.use(*rows.at, rows.count, rows.use);
  if (names.states != nullptr) {
    if (auto* states = dynamic_cast<SplitStates*>(*names.states)) {
      *names.states = at.is_host() ? static_cast<StateStorage*>(&states->host()) : &states->device();
    }
  }
  at->run(step);
}

Result<std::unique_ptr<LayerBackend>> make_placed_backend(Device& device, const ModelConfig& config,
                                                          const ModelOptions& options,
                                                          const LoadWeights& load) {
  const Placement& placement = options.placement;
  if (!placement.is_split()) return make_device_backend(device, config, options, load);
  if (!options.part.is_whole())
    return usage_error("expected --gpu-layers or --cpu-experts, or a target that ranks share, found both");
  if (options.kernels->name == kTensorCoreProfile)
    return usage_error(
        "cuda_tc needs all layers on the device, where they have no room or --gpu-layers or --cpu-experts "
        "leaves "
        "some out; leave out --kernels");
  OUTRIDER_CHECK(placement.host_layers <= config.layer_count);
  OUTRIDER_RETURN_IF_ERROR(check_device_options(device, options));
  OUTRIDER_TRY(DecoderWeights weights, load());
  KeptWeights kept = kept_weights(weights, placement);
  OUTRIDER_RETURN_IF_ERROR(check_device_weights(device, config, weights, kept));
  return on_device(device, [&] {
    return std::make_unique<SplitBackend>(device, config, options, std::move(weights), std::move(kept));
  });
}

}  // namespace outrider
