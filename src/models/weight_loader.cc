// SPDX-License-Identifier: Apache-2.0
#include "models/weight_loader.h"

#include <algorithm>
#include <atomic>
#include <new>
#include <utility>

namespace outrider {
namespace {

std::string shape_text(const Shape& shape) {
  std::string text = "[";
  for (const int64_t dim : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(dim);
  return text + "]";
}

}  // namespace

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

DType WeightLoader::loaded_type(const TensorView& view) const {
  const DType wanted = options_.weights.value_or(view.dtype);
  return view.cols() % block_elements(wanted) == 0 ? wanted : view.dtype;
}

Status WeightLoader::plan(const std::vector<Part>& parts, int64_t k, bool bias, Projection& projection) {
  std::vector<std::vector<TensorView>> runs;  // neighbours that load as one type
  for (const Part& part : parts) {
    OUTRIDER_TRY(const TensorView view, find(part.name + ".weight", {part.n, k}));
    if (runs.empty() || loaded_type(runs.back().back()) != loaded_type(view)) runs.emplace_back();
    runs.back().push_back(view);
    projection.n += part.n;
    if (bias) OUTRIDER_RETURN_IF_ERROR(read_vector(part.name + ".bias", part.n, projection.bias));
  }
  projection.k = k;
  projection.parts.resize(runs.size());
  for (size_t i = 0; i < runs.size(); ++i) {
    jobs_.emplace_back([this, views = std::move(runs[i]), &packed = projection.parts[i]] {
      return pack(views, options_.kernels->allocate, packed);
    });
  }
  return {};
}

Status WeightLoader::plan_table(const std::string& name, int64_t n, int64_t k, PackedMatrix& table) {
  OUTRIDER_TRY(const TensorView view, find(name + ".weight", {n, k}));
  jobs_.emplace_back([this, view, &table] { return pack({view}, allocate_rows, table); });
  return {};
}

Status WeightLoader::read_vector(const std::string& tensor_name, int64_t size, std::vector<float>& values) {
  OUTRIDER_TRY(const TensorView view, find(tensor_name, {size}));
  if (size % block_elements(view.dtype) != 0) {
    return input_error(file_.path.string() + ": expected " + tensor_name + " as plain numbers, found " +
                       std::string(dtype_name(view.dtype)) + "; convert the model again");
  }
  const size_t begin = values.size();
  values.resize(begin + static_cast<size_t>(size));
  dequantize_row(view.dtype, view.data, values.data() + begin, size);
  return {};
}

Status WeightLoader::pack(const std::vector<TensorView>& views, Allocate allocate,
                          PackedMatrix& packed) const {
  const MatrixSource source{views, loaded_type(views.front())};
  OUTRIDER_TRY(packed, allocate(source));
  if (options_.pool->is_pinned()) place(packed);
  const Status status = share([&](Worker worker) { options_.kernels->pack(source, packed, worker); });
  for (const TensorView& view : views) file_.drop_pages(view);
  return status;
}

// Touches memory first from the worker whose share of products it is, so that it lies on that worker's node.
void WeightLoader::place(PackedMatrix& packed) const {
  constexpr int64_t kPage = 4096;
  options_.pool->run_unshared([&](Worker worker) {
    const Range share = share_of(worker, packed.n, packed.strip_features);
    const auto offset = [&](int64_t feature) {
      return (feature + packed.strip_features - 1) / packed.strip_features * packed.strip_bytes;
    };
    for (int64_t at = offset(share.begin); at < offset(share.end); at += kPage) {
      static_cast<volatile std::byte&>(packed.data.data()[at]) = std::byte{0};
    }
  });
}

// Shares follow those of products, but a worker that is late is helped, so that memory may be touched first
// by another than the one who will read it.
template <typename Work>
Status WeightLoader::share(Work&& work) const {
  constexpr int kSharesEach = 4;  // evens out what page faults cost
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

Status WeightLoader::pack_all() {
  for (const auto& job : std::exchange(jobs_, {})) {
    try {
      OUTRIDER_RETURN_IF_ERROR(job());
    } catch (const std::bad_alloc&) {
      return no_memory();
    }
  }
  return {};
}

}  // namespace outrider
