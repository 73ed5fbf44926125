// SPDX-License-Identifier: Apache-2.0
#include "models/weight_loader.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <mutex>
#include <optional>
#include <utility>

#include "device/mapped_file.h"

namespace outrider {
namespace {

std::string shape_text(const Shape& shape) {
  std::string text = "[";
  for (const int64_t dim : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(dim);
  return text + "]";
}

// Rows of `view` as `dtype`, to `out`.
void convert_rows(const TensorView& view, DType dtype, std::byte* out) {
  if (dtype == view.dtype) {
    std::memcpy(out, view.data, static_cast<size_t>(view.bytes()));
    return;
  }
  std::vector<float> row(static_cast<size_t>(view.cols()));
  const int64_t stored_bytes = row_bytes(view.dtype, view.cols());
  const int64_t converted_bytes = row_bytes(dtype, view.cols());
  for (int64_t r = 0; r < view.rows(); ++r) {
    dequantize_row(view.dtype, view.data + r * stored_bytes, row.data(), view.cols());
    quantize_row(dtype, row.data(), out + r * converted_bytes, view.cols());
  }
}

}  // namespace

int64_t Projection::bytes() const {
  size_t total = bias.size() * sizeof(float);
  for (const PackedMatrix& part : parts) total += part.data.size();
  return static_cast<int64_t>(total);
}

void EmbeddingTable::read(TokenId token, float* out) const {
  dequantize_row(dtype, rows.data() + token * row_bytes(dtype, k), out, k);
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
    int64_t bytes = 0;
    for (const TensorView& view : runs[i]) bytes += view.bytes();
    jobs_.push_back({bytes, [this, views = std::move(runs[i]), &packed = projection.parts[i]] {
                       const Status status = pack(views, packed);
                       for (const TensorView& view : views) drop(view);
                       return status;
                     }});
  }
  return {};
}

Status WeightLoader::plan_table(const std::string& name, int64_t n, int64_t k, EmbeddingTable& table) {
  OUTRIDER_TRY(const TensorView view, find(name + ".weight", {n, k}));
  table.dtype = loaded_type(view);
  table.n = n;
  table.k = k;
  jobs_.push_back({view.bytes(), [this, view, &table] {
                     table.rows = joined({view}, table.dtype);
                     drop(view);
                     return Status();
                   }});
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

Buffer WeightLoader::joined(const std::vector<TensorView>& views, DType dtype) const {
  int64_t bytes = 0;
  for (const TensorView& view : views) bytes += view.rows() * row_bytes(dtype, view.cols());
  Buffer buffer(static_cast<size_t>(bytes));
  std::byte* out = buffer.data();
  for (const TensorView& view : views) {
    convert_rows(view, dtype, out);
    out += view.rows() * row_bytes(dtype, view.cols());
  }
  return buffer;
}

Status WeightLoader::pack(const std::vector<TensorView>& views, PackedMatrix& packed) const {
  const DType dtype = loaded_type(views.front());
  if (views.size() == 1 && dtype == views.front().dtype) {
    OUTRIDER_TRY(packed, options_.kernels->pack(views.front()));
    return {};
  }
  const Buffer buffer = joined(views, dtype);
  TensorView matrix{dtype, {0, views.front().cols()}, buffer.data()};
  for (const TensorView& view : views) matrix.shape[0] += view.rows();
  OUTRIDER_TRY(packed, options_.kernels->pack(matrix));
  return {};
}

void WeightLoader::drop(const TensorView& view) const {
  const std::span bytes(view.data, static_cast<size_t>(view.bytes()));
  for (const auto& mapped : file_.mapped) {
    if (bytes.data() >= mapped.data() && bytes.data() + bytes.size() <= mapped.data() + mapped.size()) {
      drop_mapped_pages(bytes);
    }
  }
}

Status WeightLoader::pack_all() {
  // The largest first, so that no worker is left with one when the others are done.
  std::stable_sort(jobs_.begin(), jobs_.end(), [](const Job& a, const Job& b) { return a.bytes > b.bytes; });
  std::atomic<size_t> next{0};
  std::mutex mutex;
  std::optional<Error> failed;  // guarded by mutex
  options_.pool->run([&](Worker) {
    for (size_t job = next++; job < jobs_.size(); job = next++) {
      Status status;
      try {
        status = jobs_[job].run();
      } catch (const std::exception&) {  // only allocation can fail here
        status =
            resource_error(file_.path.string() + ": not enough memory for its weights; choose a smaller " +
                           "model, or a smaller weight type");
      }
      if (status.ok()) continue;
      const std::lock_guard lock(mutex);
      if (!failed) failed = status.error();
      next = jobs_.size();
    }
  });
  jobs_.clear();
  if (failed) return *failed;
  return {};
}

}  // namespace outrider
