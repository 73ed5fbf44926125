// SPDX-License-Identifier: Apache-2.0
#include "cli/reports/memory_forecast.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "models/weights/memory_plan.h"
#include "models/weights/stored_part.h"
#include "platform/direct_file.h"

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

// The bytes of a model by their use.
struct StoredSizes {
  std::vector<size_t> layers;  // without experts
  ExpertSizes experts;
  int64_t rest = 0;
};

StoredSizes stored_sizes(const ModelFile& model) {
  const ModelConfig& config = model.config;
  StoredSizes sizes{.layers = std::vector<size_t>(static_cast<size_t>(config.layer_count)),
                    .experts = {.used = config.experts.used}};
  int64_t expert_bytes = 0;  // of all
  for (const auto& [name, tensor] : model.tensors) {
    const int64_t layer = layer_of(name);
    if (layer < 0 || layer >= config.layer_count) {
      sizes.rest += tensor.bytes();
    } else if (name.find(".mlp.experts.") != std::string::npos) {
      expert_bytes += tensor.bytes();
    } else {
      sizes.layers[static_cast<size_t>(layer)] += static_cast<size_t>(tensor.bytes());
    }
  }
  for (int64_t i = 0; i < config.layer_count; ++i) sizes.experts.layers += config.has_experts(i) ? 1 : 0;
  sizes.experts.count = sizes.experts.layers * config.experts.count;
  if (sizes.experts.count > 0) sizes.experts.bytes = expert_bytes / sizes.experts.count;
  return sizes;
}

}  // namespace

Result<MemoryForecast> forecast_memory(const ModelFile& model, int64_t limit, int64_t cache_bytes) {
  constexpr int64_t kProgram = int64_t{64} << 20;  // code, texts and the scratch of passes
  const StoredSizes sizes = stored_sizes(model);
  const int64_t resident = sizes.rest + cache_bytes + kProgram;
  const MemoryPlan plan = plan_memory(sizes.layers, sizes.experts, limit - resident);
  MemoryForecast forecast{.layers = model.config.layer_count,
                          .streamed_layers = std::ranges::count(plan.layers.streamed, true),
                          .experts = sizes.experts.count,
                          .kept_experts = plan.kept_experts,
                          .streamed_bytes = plan.row_bytes,
                          .read_rate = 0,
                          .needed = resident + plan.memory};
  if (plan.row_bytes > 0) {
    OUTRIDER_TRY(forecast.read_rate, measure_read_rate(largest_file(model)));
  }
  return forecast;
}

}  // namespace outrider
