// SPDX-License-Identifier: Apache-2.0
#include "cli/reports/memory_forecast.h"

#include <algorithm>
#include <string>

#include "base/clock.h"
#include "models/weights/stored_part.h"
#include "platform/direct_file.h"

namespace outrider {
namespace {

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
Result<double> measure_disk_rate(const std::filesystem::path& path) {
  constexpr size_t kPart = size_t{16} << 20;
  constexpr double kEnough = 300;  // ms
  std::error_code error;
  const size_t size = std::filesystem::file_size(path, error) / DirectFile::kBlock * DirectFile::kBlock;
  const size_t part = std::min(size, kPart);
  if (error || part == 0)
    return io_error("cannot measure how fast " + path.string() + " is read; it is too small");
  OUTRIDER_TRY(const std::unique_ptr<DirectFile> file, DirectFile::open(path));
  const ReadMemory memory(part);
  size_t read = 0;
  const double begin_ms = now_ms();
  for (size_t offset = 0; read == 0 || now_ms() - begin_ms < kEnough; offset += part) {
    if (offset + part > size) offset = 0;
    FileRead next;
    file->begin(next, offset, memory.bytes);
    OUTRIDER_RETURN_IF_ERROR(file->finish(next));
    read += part;
  }
  return 1e3 * static_cast<double>(read) / (now_ms() - begin_ms);
}

}  // namespace

Result<MemoryForecast> forecast_memory(const OpenedFiles& files) {
  MemoryForecast forecast;
  OUTRIDER_TRY(forecast.memory, plan_parts(files));
  if (forecast.memory.layers.bytes > 0) {
    OUTRIDER_TRY(forecast.read_rate, measure_disk_rate(largest_file(files.target)));
  }
  return forecast;
}

}  // namespace outrider
