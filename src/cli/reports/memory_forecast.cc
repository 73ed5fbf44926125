// SPDX-License-Identifier: Apache-2.0
#include "cli/reports/memory_forecast.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "models/streaming/layer_stream.h"
#include "platform/direct_file.h"
#include "tensor/buffer.h"

namespace outrider {
namespace {

// The layer of a tensor, or -1.
int64_t layer_of(std::string_view name) {
  constexpr std::string_view kPrefix = "model.layers.";
  if (!name.starts_with(kPrefix)) return -1;
  int64_t layer = -1;
  const auto parsed = std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), layer);
  return parsed.ec == std::errc() ? layer : -1;
}

// The file that holds most of the model: itself, or the largest of its folder.
std::filesystem::path largest_file(const ModelFile& model) {
  std::error_code error;
  if (!std::filesystem::is_directory(model.path, error)) return model.path;
  std::filesystem::path largest;
  uintmax_t bytes = 0;
  for (const auto& entry : std::filesystem::directory_iterator(model.path, error)) {
    const uintmax_t size = entry.is_regular_file(error) ? entry.file_size(error) : 0;
    if (size > bytes) {
      bytes = size;
      largest = entry.path();
    }
  }
  return largest;
}

// Reads parts of the file for some tenths of a second.
Result<double> measure_read_rate(const std::filesystem::path& path) {
  constexpr size_t kPart = size_t{16} << 20;
  constexpr double kEnough = 300;  // ms
  std::error_code error;
  const size_t size = std::filesystem::file_size(path, error) / DirectFile::kBlock * DirectFile::kBlock;
  const size_t part = std::min(size, kPart);
  if (error || part == 0)
    return io_error("cannot measure how fast " + path.string() + " is read; it is too small");
  OUTRIDER_TRY(const std::unique_ptr<DirectFile> file, DirectFile::open(path));
  Buffer memory(kPart + DirectFile::kBlock);
  const size_t gap = DirectFile::kBlock - reinterpret_cast<uintptr_t>(memory.data()) % DirectFile::kBlock;
  size_t read = 0;
  const double begin_ms = now_ms();
  for (size_t offset = 0; read == 0 || now_ms() - begin_ms < kEnough; offset += part) {
    if (offset + part > size) offset = 0;
    FileRead next;
    file->begin(next, offset, {memory.data() + gap, part});
    OUTRIDER_RETURN_IF_ERROR(file->finish(next));
    read += part;
  }
  return 1e3 * static_cast<double>(read) / (now_ms() - begin_ms);
}

}  // namespace

Result<MemoryForecast> forecast_memory(const ModelFile& model, int64_t limit, int64_t cache_bytes) {
  constexpr int64_t kProgram = int64_t{64} << 20;  // code, texts and the scratch of passes
  std::vector<size_t> layers(static_cast<size_t>(model.config.layer_count));
  int64_t resident = cache_bytes + kProgram;
  for (const auto& [name, tensor] : model.tensors) {
    const int64_t layer = layer_of(name);
    if (layer >= 0 && layer < model.config.layer_count) {
      layers[static_cast<size_t>(layer)] += static_cast<size_t>(tensor.bytes());
    } else {
      resident += tensor.bytes();
    }
  }
  const StreamPlan plan = plan_streaming(layers, limit - resident);
  MemoryForecast forecast{.layers = model.config.layer_count,
                          .streamed_layers = std::ranges::count(plan.streamed, true),
                          .streamed_bytes = plan.streamed_bytes,
                          .read_rate = 0,
                          .needed = resident + plan.memory};
  if (plan.streamed_bytes > 0) {
    OUTRIDER_TRY(forecast.read_rate, measure_read_rate(largest_file(model)));
  }
  return forecast;
}

}  // namespace outrider
