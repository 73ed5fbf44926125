// SPDX-License-Identifier: Apache-2.0
#include "models/weights/weight_loader.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <new>
#include <numeric>
#include <utility>

#include "base/log.h"
#include "kernels/weight_codes.h"

namespace outrider {

int64_t Projection::bytes() const {
  size_t total = bias.size() * sizeof(float);
  for (const PackedMatrix& part : parts) total += part.data.size();
  return static_cast<int64_t>(total);
}

Result<TensorView> WeightLoader::find(const std::string& tensor_name, const Shape& shape) const {
  const auto found = file_.tensors.find(tensor_name);
  if (found == file_.tensors.end()) {
    return input_error(file_.path.string() + ": expected a tensor " + tensor_name +
                       ", found none; the file is incomplete or of another family");
  }
  if (found->second.shape != shape) {
    return input_error(file_.path.string() + ": expected shape " + shape_text(shape) + " of " + tensor_name +
                       ", found " + shape_text(found->second.shape) + "; its configuration does not fit");
  }
  return found->second;
}

DType WeightLoader::loaded_type(const TensorView& view, const Part& part) const {
  const DType wanted = part.type ? *part.type : options_.weights.value_or(view.dtype);
  if (part.is_table && wanted == DType::kF8) return view.dtype == DType::kF8 ? DType::kBF16 : view.dtype;
  return view.cols() % block_elements(wanted) == 0 ? wanted : view.dtype;
}

int64_t WeightLoader::Part::row_count() const {
  if (!rows) return n;
  int64_t count = 0;
  for (const Range& range : *rows) count += range.end - range.begin;
  return count;
}

void WeightLoader::add_rows(const Part& part, const TensorView& view, MatrixPlan& plan) {
  plan.names += (plan.names.empty() ? "" : ",") + part.name;
  if (!part.rows) return plan.parts.push_back(view);
  for (const Range& range : *part.rows) {
    if (range.begin == range.end) continue;
    plan.names += "[" + std::to_string(range.begin) + ":" + std::to_string(range.end) + "]";
    plan.parts.push_back(view.rows_from(range.begin, range.end - range.begin));
  }
}

// A panel of some types has numbers that depend on all of its rows, so that a shard must have whole panels.
Status WeightLoader::check_rows(const std::vector<Part>& parts, size_t index, DType type) const {
  constexpr int64_t kWidestPanel = 32;  // features
  const Part& part = parts[index];
  if (!part.rows || block_elements(type) == 1 || code_type(type).products == 0) return {};
  for (const Range& range : *part.rows) {
    // The last panel of the whole matrix may be shorter.
    const bool ends = range.end % kWidestPanel == 0 || (range.end == part.n && parts.size() == 1);
    if (range.begin % kWidestPanel == 0 && ends) continue;
    return usage_error(file_.path.string() + ": " + part.name + " of type " + std::string(dtype_name(type)) +
                       " can be cut after every 32 rows, found a cut between heads of another size; lower "
                       "--tensor-parallel, or use --weights q8_0");
  }
  return {};
}

Status WeightLoader::read_bias(const Part& part, std::vector<float>& bias) {
  const size_t begin = bias.size();
  OUTRIDER_RETURN_IF_ERROR(read_vector(part.name + ".bias", part.n, bias));
  if (!part.rows) return {};
  const std::vector<float> all(bias.begin() + static_cast<ptrdiff_t>(begin), bias.end());
  bias.resize(begin);
  for (const Range& range : *part.rows)
    bias.insert(bias.end(), all.begin() + range.begin, all.begin() + range.end);
  return {};
}

Status WeightLoader::plan(const std::vector<Part>& parts, int64_t k, bool bias, Projection& projection) {
  std::vector<MatrixPlan> runs;  // of neighbouring parts that load as one type
  for (size_t i = 0; i < parts.size(); ++i) {
    const Part& part = parts[i];
    OUTRIDER_TRY(const TensorView view, find(part.name + ".weight", {part.n, k}));
    const DType type = loaded_type(view, part);
    OUTRIDER_RETURN_IF_ERROR(check_rows(parts, i, type));
    projection.name += (projection.name.empty() ? "" : " ") + part.name.substr(part.name.rfind('.') + 1);
    projection.outputs.push_back({part.name, part.row_count()});
    projection.n += part.row_count();
    if (bias) OUTRIDER_RETURN_IF_ERROR(read_bias(part, projection.bias));
    if (part.row_count() == 0) continue;
    if (runs.empty() || runs.back().type != type) runs.push_back({.type = type});
    add_rows(part, view, runs.back());
  }
  projection.k = k;
  projection.parts.resize(runs.size());
  for (size_t i = 0; i < runs.size(); ++i) {
    OUTRIDER_RETURN_IF_ERROR(plan_matrix(std::move(runs[i]), options_.kernels->layout, projection.parts[i]));
  }
  return {};
}

Status WeightLoader::plan_cut(Part part, const std::vector<Range>& inputs, bool bias,
                              Projection& projection) {
  const Shard shard = options_.part.shard;
  const int64_t k = inputs.back().end;
  if (!shard.is_whole()) {
    part.rows = {shard.of(part.n)};
    projection.cut = {.inputs = inputs, .outputs = shard.cut(part.n)};
  }
  return plan({std::move(part)}, k, bias, projection);
}

Status WeightLoader::plan_table(Part part, int64_t k, PackedMatrix& table) {
  part.is_table = true;
  OUTRIDER_TRY(const TensorView view, find(part.name + ".weight", {part.n, k}));
  MatrixPlan plan{.type = loaded_type(view, part)};
  add_rows(part, view, plan);
  return plan_matrix(std::move(plan), row_layout, table);
}

Status WeightLoader::plan_matrix(MatrixPlan plan, Layout layout, PackedMatrix& packed) {
  OUTRIDER_TRY(packed, layout({plan.parts, plan.type}));
  PackingJob& job = jobs_.emplace_back();
  job = {.names = std::move(plan.names),
         .parts = std::move(plan.parts),
         .packed = &packed,
         .offset = planned_bytes_};
  constexpr size_t kLine = 64;  // bytes that matrices are aligned to
  planned_bytes_ += (static_cast<size_t>(packed.bytes()) + kLine - 1) / kLine * kLine;
  return {};
}

Status WeightLoader::read_numbers(const std::string& tensor_name, const Shape& shape,
                                  std::vector<float>& values) {
  OUTRIDER_TRY(const TensorView view, find(tensor_name, shape));
  const int64_t size = std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
  if (shape.back() % block_elements(view.dtype) != 0 || view.source != nullptr) {
    return input_error(file_.path.string() + ": expected " + tensor_name + " as plain numbers, found " +
                       std::string(dtype_name(view.dtype)) + "; convert the model again");
  }
  const size_t begin = values.size();
  values.resize(begin + static_cast<size_t>(size));
  dequantize_row(view.dtype, view.data, values.data() + begin, size);
  return {};
}

Status WeightLoader::read_columns(const std::string& tensor_name, int64_t rows, int64_t columns,
                                  std::vector<float>& values) {
  std::vector<float> stored;
  OUTRIDER_RETURN_IF_ERROR(read_numbers(tensor_name, {rows, columns}, stored));
  for (int64_t column = 0; column < columns; ++column) {
    for (int64_t row = 0; row < rows; ++row)
      values.push_back(stored[static_cast<size_t>(row * columns + column)]);
  }
  return {};
}

Result<Buffer> WeightLoader::pack(const std::vector<PackingJob>& jobs, size_t bytes) const {
  try {
    Buffer buffer(bytes);
    for (const PackingJob& job : jobs) {
      const auto size = static_cast<size_t>(job.packed->bytes());
      job.packed->data = Buffer::borrowed({buffer.data() + job.offset, size});
      OUTRIDER_RETURN_IF_ERROR(pack(job));
    }
    return buffer;
  } catch (const std::bad_alloc&) {
    return no_memory();
  }
}

Status WeightLoader::pack(const PackingJob& job) const {
  if (options_.pool->is_pinned()) place(*job.packed);
  const Status status =
      share([&](Worker worker) { options_.kernels->pack(job.source(), *job.packed, worker); });
  for (const TensorView& part : job.parts) file_.drop_pages(part);
  return status;
}

// Touches memory first from the worker that will multiply with it, so that it lies on that worker's NUMA
// node.
void WeightLoader::place(PackedMatrix& packed) const {
  constexpr int64_t kPage = 4096;
  options_.pool->run_unshared([&](Worker worker) {
    const Range share = share_of(worker, packed.n, packed.panel_features);
    const auto offset = [&](int64_t feature) {
      return (feature + packed.panel_features - 1) / packed.panel_features * packed.panel_bytes;
    };
    for (int64_t at = offset(share.begin); at < offset(share.end); at += kPage) {
      static_cast<volatile std::byte&>(packed.data.data()[at]) = std::byte{0};
    }
  });
}

// Shares follow the shares of products. Other workers help a late one, so memory may be touched first by
// another worker than the one that will read it.
template <typename Work>
Status WeightLoader::share(Work&& work) const {
  constexpr int kSharesEach = 4;  // shares per worker; several even out the cost of page faults
  std::atomic<bool> out_of_memory = false;
  options_.pool->run(kSharesEach * options_.pool->size(), [&](Worker worker) {
    try {
      work(worker);
    } catch (const std::bad_alloc&) {
      out_of_memory = true;
    }
  });
  if (out_of_memory) return no_memory();
  return {};
}

Error WeightLoader::no_memory() const {
  return resource_error(
      file_.path.string() +
      ": not enough memory for its weights; choose a smaller model, or a smaller weight type");
}

Result<WeightMemory> WeightLoader::pack_all() {
  const std::vector<PackingJob> jobs = std::exchange(jobs_, {});
  const size_t bytes = std::exchange(planned_bytes_, 0);
  for (const PackingJob& job : jobs) packed_bytes_ += job.packed->bytes();
  // Random weights have no file with a stamp that could tell that they changed.
  const bool is_cached = !options_.packed_cache.empty() && !file_.files.empty();
  const PackedCache cache(options_.packed_cache, file_, *options_.kernels, jobs);
  if (is_cached) {
    if (std::optional<MappedFile> mapped = cache.open(*options_.pool)) {
      for (size_t i = 0; i < jobs.size(); ++i) {
        jobs[i].packed->data = Buffer::borrowed(cache.bytes(*mapped, i));
        for (const TensorView& part : jobs[i].parts) file_.drop_pages(part);
      }
      return WeightMemory{.file = std::move(mapped)};
    }
  }
  WeightMemory memory;
  OUTRIDER_TRY(memory.buffer, pack(jobs, bytes));
  OUTRIDER_RETURN_IF_ERROR(file_.check_files());
  if (is_cached) {
    if (const Status written = cache.write(); !written.ok()) {
      log_warning("packed weights are not kept: " + written.error().message);
    }
  }
  return memory;
}

Status WeightLoader::pack_to_file(const PackedCache& cache) const {
  if (options_.packed_cache.empty() || file_.files.empty()) {
    return usage_error("a limit of memory needs a model in files and a folder for packed weights, found " +
                       std::string(file_.files.empty() ? "random weights" : "none; set --packed-cache"));
  }
  if (cache.exists(*options_.pool)) return {};
  log_info("packing the weights into " + cache.path().string());
  return cache.write([this](const PackingJob& job) -> Status {
    OUTRIDER_RETURN_IF_ERROR(allocate(*job.packed));
    return pack(job);
  });
}

// The part of the jobs [begin, end); their matrices get sizes but no data.
StoredPart WeightLoader::stored_part(const PackedCache& cache, std::span<const PackingJob> jobs,
                                     Range range) {
  StoredPart part;
  part.begin = cache.offset(static_cast<size_t>(range.begin));
  part.bytes = cache.end(static_cast<size_t>(range.end - 1)) - part.begin;
  for (auto i = static_cast<size_t>(range.begin); i < static_cast<size_t>(range.end); ++i) {
    PackedMatrix& packed = *jobs[i].packed;
    const std::byte* const nowhere = nullptr;
    packed.data = Buffer::borrowed({nowhere, static_cast<size_t>(packed.bytes())});
    part.matrices.push_back({&packed, cache.offset(i) - part.begin});
  }
  return part;
}

Result<StoredWeights> WeightLoader::store_all(std::span<const size_t> ends) {
  const std::vector<PackingJob> jobs = std::exchange(jobs_, {});
  planned_bytes_ = 0;
  for (const PackingJob& job : jobs) packed_bytes_ += job.packed->bytes();
  const PackedCache cache(options_.packed_cache, file_, *options_.kernels, jobs);
  if (!options_.plans_only) OUTRIDER_RETURN_IF_ERROR(pack_to_file(cache));
  StoredWeights stored{.path = cache.path()};
  size_t next = 0;
  for (const size_t end : ends) {
    stored.parts.push_back(stored_part(cache, jobs, {static_cast<int64_t>(next), static_cast<int64_t>(end)}));
    next = end;
  }
  const auto rest = std::span(jobs).subspan(next);
  for (const PackingJob& job : rest) OUTRIDER_RETURN_IF_ERROR(allocate(*job.packed));
  if (options_.plans_only) return stored;
  OUTRIDER_TRY(const MappedFile mapped, MappedFile::open(cache.path()));
  for (; next < jobs.size(); ++next) {
    const std::span<const std::byte> bytes = cache.bytes(mapped, next);
    std::memcpy(jobs[next].packed->data.data(), bytes.data(), bytes.size());
    drop_mapped_pages(bytes);
  }
  return stored;
}

}  // namespace outrider
