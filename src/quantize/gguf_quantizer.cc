// SPDX-License-Identifier: Apache-2.0
#include "quantize/gguf_quantizer.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <system_error>
#include <utility>

#include "kernels/kernel_table.h"
#include "platform/durable_file.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kChunkElements = int64_t{1} << 22;  // numbers; bounds the memory that a tensor takes

double bits_per_weight(DType type) {
  return 8.0 * static_cast<double>(block_bytes(type)) / static_cast<double>(block_elements(type));
}

bool is_output(const std::string& name, bool tied_embeddings) {
  return name == (tied_embeddings ? "token_embd.weight" : "output.weight");
}

// Whether a tensor has the matrices of all experts of a layer.
bool is_experts(const std::string& name) { return name.ends_with("_exps.weight"); }

// Whether a tensor decides which experts a row uses, or how much a shared one counts.
bool is_router(const std::string& name) { return name.find(".ffn_gate_inp") != std::string::npos; }

// The type with blocks of 32 for rows that blocks of 256 do not divide.
DType fallback_of(DType type) { return type == DType::kQ4_K ? DType::kQ4_0 : DType::kQ8_0; }

void choose_type(const GgufTensor& tensor, DType type, bool tied_embeddings, QuantizedTensor* planned) {
  const Shape& shape = tensor.view.shape;
  planned->to = planned->from;
  if (shape.size() == 1) planned->to = DType::kF32;
  if (shape.size() != 2 && !is_experts(tensor.name)) return;
  if (is_router(tensor.name)) return;
  if (bits_per_weight(type) < bits_per_weight(DType::kQ6_K) && is_output(tensor.name, tied_embeddings))
    type = DType::kQ6_K;
  for (const DType candidate : {type, fallback_of(type)}) {
    planned->fell_back = candidate != type;
    if (shape.back() % block_elements(candidate) != 0) continue;
    planned->to = candidate;
    return;
  }
  planned->fell_back = true;
}

// llama.cpp's general.file_type: a number that names the type of most matrices.
int64_t file_type_number(DType type) {
  switch (type) {
    case DType::kQ4_0:
      return 2;
    case DType::kQ4_1:
      return 3;
    case DType::kQ5_0:
      return 8;
    case DType::kQ5_1:
      return 9;
    case DType::kQ4_K:
      return 14;
    case DType::kQ6_K:
      return 18;
    case DType::kIQ4_NL:
      return 25;
    case DType::kMXFP4:
      return 38;
    default:
      return 7;  // Q8_0
  }
}

// Sums over one row. Rows are added up in their order, so that the number of threads changes no bit.
struct RowError {
  double squares = 0;  // sum of the squared numbers
  double errors = 0;   // sum of the squared errors
  double largest = 0;
};

using Floats = std::vector<float>;

struct RowBuffers {
  std::vector<std::byte> made;
  Floats values;
  Floats restored;
};

RowError convert_row(const TensorView& view, int64_t row, DType to, RowBuffers* buffers, std::byte* out) {
  const int64_t cols = view.cols();
  dequantize_row(view.dtype, view.row(row, buffers->made), buffers->values.data(), cols);
  quantize_row(to, buffers->values.data(), out, cols);
  dequantize_row(to, out, buffers->restored.data(), cols);
  RowError error;
  for (size_t i = 0; i < buffers->values.size(); ++i) {
    const double value = buffers->values[i];
    const double difference = std::fabs(value - buffers->restored[i]);
    error.squares += value * value;
    error.errors += difference * difference;
    error.largest = std::max(error.largest, difference);
  }
  return error;
}

class QuantizedWriter {
 public:
  QuantizedWriter(const QuantizeOptions& options, const ByteSink& sink) : options_(options), sink_(sink) {}

  Status write(const TensorView& view, QuantizedTensor* tensor) {
    RowError total;
    if (tensor->from == tensor->to) {
      OUTRIDER_RETURN_IF_ERROR(copy(view));
    } else {
      OUTRIDER_RETURN_IF_ERROR(convert(view, tensor->to, &total));
    }
    if (!std::isfinite(total.errors)) {
      return input_error(tensor->name + " holds numbers that are not finite, or too large for " +
                         std::string(dtype_name(tensor->to)) + "; the model is damaged");
    }
    const double count = static_cast<double>(view.rows() * view.cols());
    tensor->rmse = std::sqrt(total.errors / count);
    tensor->relative_rmse = total.squares == 0 ? 0 : std::sqrt(total.errors / total.squares);
    tensor->max_error = total.largest;
    return sink_(std::string(static_cast<size_t>(gguf_padding(tensor->bytes)), '\0'));
  }

 private:
  Status copy(const TensorView& view) {
    const auto write = [this](const std::byte* bytes, int64_t count) {
      return sink_({reinterpret_cast<const char*>(bytes), static_cast<size_t>(count)});
    };
    if (view.data != nullptr) return write(view.data, view.bytes());
    std::vector<std::byte> made;
    for (int64_t row = 0; row < view.rows(); ++row)
      OUTRIDER_RETURN_IF_ERROR(write(view.row(row, made), row_bytes(view.dtype, view.cols())));
    return {};
  }

  Status convert(const TensorView& view, DType to, RowError* total) {
    const int64_t chunk_rows = std::max<int64_t>(kChunkElements / view.cols(), options_.pool->size());
    const int64_t stride = row_bytes(to, view.cols());
    const Floats row(static_cast<size_t>(view.cols()));
    buffers_.assign(static_cast<size_t>(options_.pool->size()), {{}, row, row});
    for (int64_t begin = 0; begin < view.rows(); begin += chunk_rows) {
      const int64_t rows = std::min(chunk_rows, view.rows() - begin);
      bytes_.resize(static_cast<size_t>(rows * stride));
      errors_.resize(static_cast<size_t>(rows));
      options_.pool->run([&](Worker worker) {
        const Range share = share_of(worker, rows);
        for (int64_t row = share.begin; row < share.end; ++row) {
          auto* out = reinterpret_cast<std::byte*>(bytes_.data() + row * stride);
          errors_[static_cast<size_t>(row)] =
              convert_row(view, begin + row, to, &buffers_[static_cast<size_t>(worker.index)], out);
        }
      });
      for (const RowError& error : errors_) {
        total->squares += error.squares;
        total->errors += error.errors;
        total->largest = std::max(total->largest, error.largest);
      }
      OUTRIDER_RETURN_IF_ERROR(sink_(bytes_));
    }
    return {};
  }

  const QuantizeOptions& options_;
  const ByteSink& sink_;
  std::string bytes_;
  std::vector<RowError> errors_;     // [rows of the chunk]
  std::vector<RowBuffers> buffers_;  // [workers]
};

Status check_room(const fs::path& path, int64_t needed) {
  std::error_code code;
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  const fs::space_info space = fs::space(folder, code);
  if (code || static_cast<uintmax_t>(needed) <= space.available)
    return {};  // where the room is unknown, writing reports the error
  return io_error(path.string() + ": expected " + std::to_string(needed) + " bytes of room in " +
                  folder.string() + ", found " + std::to_string(space.available) +
                  "; free some or write elsewhere");
}

}  // namespace

std::vector<QuantizedTensor> plan_quantization(const GgufModel& model, DType type) {
  std::vector<QuantizedTensor> plan;
  for (const GgufTensor& tensor : model.tensors) {
    QuantizedTensor planned;
    planned.name = tensor.name;
    planned.from = tensor.view.dtype;
    planned.shape = tensor.view.shape;
    choose_type(tensor, type, model.tied_embeddings, &planned);
    planned.bytes_before = tensor.view.bytes();
    planned.bytes = TensorView{planned.to, planned.shape, nullptr}.bytes();
    plan.push_back(std::move(planned));
  }
  return plan;
}

Result<std::vector<QuantizedTensor>> write_quantized(const GgufModel& model, const fs::path& path,
                                                     const QuantizeOptions& options) {
  std::vector<QuantizedTensor> tensors = plan_quantization(model, options.type);
  GgufMetadataWriter metadata = model.metadata;
  metadata.set_u32("general.quantization_version", 2);
  metadata.set_u32("general.file_type", file_type_number(options.type));
  std::vector<GgufTensorInfo> infos;
  for (const QuantizedTensor& tensor : tensors) infos.push_back({tensor.name, tensor.to, tensor.shape});
  const std::string header = gguf_header(metadata, infos);
  auto size = static_cast<int64_t>(header.size());
  for (const QuantizedTensor& tensor : tensors) size += tensor.bytes + gguf_padding(tensor.bytes);
  OUTRIDER_RETURN_IF_ERROR(check_room(path, size));
  OUTRIDER_RETURN_IF_ERROR(write_durably(path, [&](const ByteSink& sink) -> Status {
    OUTRIDER_RETURN_IF_ERROR(sink(header));
    QuantizedWriter writer(options, sink);
    for (size_t i = 0; i < tensors.size(); ++i) {
      OUTRIDER_RETURN_IF_ERROR(writer.write(model.tensors[i].view, &tensors[i]));
      if (options.on_tensor) options.on_tensor(tensors[i]);
    }
    return {};
  }));
  return tensors;
}

}  // namespace outrider
