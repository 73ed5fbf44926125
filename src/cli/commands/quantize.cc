// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "base/thread_pool.h"
#include "cli/commands/commands.h"
#include "cli/reports/completion_json.h"
#include "cli/terminal.h"
#include "config/message_text.h"
#include "formats/gguf/gguf_export.h"
#include "quantize/gguf_quantizer.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

Status check_usage(const Settings& settings) {
  if (settings.engine.model.empty() || settings.quantize.output.empty()) {
    return usage_error("expected IN and OUT: outrider quantize IN OUT.gguf --type q4_k");
  }
  if (settings.quantize.type.empty()) {
    return usage_error("expected --type q8_0, q4_k or another type, found none; --help lists them");
  }
  if (settings.quantize.output.extension() != ".gguf") {
    return usage_error(
        fmt::format("OUT: expected a name that ends in .gguf, found {}", settings.quantize.output.string()));
  }
  return {};
}

Status check_output(const fs::path& output, const GgufModel& model, bool force) {
  std::error_code code;
  const fs::file_status status = fs::status(output, code);
  if (!fs::exists(status)) return {};
  for (const fs::path& file : model.files) {
    if (fs::equivalent(file, output, code)) {
      return input_error(fmt::format("{} is IN, or a part of it; write to another file", output.string()));
    }
  }
  if (!fs::is_regular_file(status)) {
    return input_error(fmt::format("{} exists and is not a file; choose another OUT", output.string()));
  }
  if (force) return {};
  return input_error(fmt::format("{} exists; --force replaces it", output.string()));
}

// Warnings for standard error, before the work begins.
std::vector<std::string> warnings_of(const GgufModel& model, const std::vector<QuantizedTensor>& plan) {
  std::vector<std::string> warnings = model.notes;
  size_t requantized = 0;
  std::map<std::pair<DType, int64_t>, std::vector<std::string>> fallbacks;
  for (const QuantizedTensor& tensor : plan) {
    const bool is_quantized = block_elements(tensor.from) > 1;
    if (is_quantized && tensor.from != tensor.to) ++requantized;
    if (tensor.fell_back) fallbacks[{tensor.to, tensor.shape.back()}].push_back(tensor.name);
  }
  if (requantized > 0) {
    warnings.push_back(fmt::format(
        "{} matrices are quantised already and lose quality a second time; quantise the original instead",
        requantized));
  }
  for (const auto& [choice, names] : fallbacks) {
    warnings.push_back(fmt::format(
        "{} matrices with rows of {} fit no whole blocks and become {} instead: {}{}", names.size(),
        choice.second, dtype_name(choice.first), names.front(), names.size() > 1 ? ", ..." : ""));
  }
  return warnings;
}

struct Sizes {
  int64_t before = 0;
  int64_t after = 0;
  int64_t weights = 0;

  double bits_per_weight() const { return 8.0 * static_cast<double>(after) / static_cast<double>(weights); }
};

Sizes sizes_of(const std::vector<QuantizedTensor>& tensors) {
  Sizes sizes;
  for (const QuantizedTensor& tensor : tensors) {
    sizes.before += tensor.bytes_before;
    sizes.after += tensor.bytes;
    int64_t weights = 1;
    for (const int64_t dimension : tensor.shape) weights *= dimension;
    sizes.weights += weights;
  }
  return sizes;
}

std::string report_text(const Settings& settings, const std::vector<QuantizedTensor>& tensors) {
  std::string text = fmt::format("{:<28} {:>4}    {:<4} {:>12} {:>10} {:>10} {:>10}\n", "tensor", "from",
                                 "to", "bytes", "rmse", "relative", "largest");
  for (const QuantizedTensor& tensor : tensors) {
    text += fmt::format("{:<28} {:>4} -> {:<4} {:>12}", tensor.name, dtype_name(tensor.from),
                        dtype_name(tensor.to), tensor.bytes);
    if (tensor.max_error > 0) {
      text += fmt::format(" {:>10.3e} {:>9.3f}% {:>10.3e}", tensor.rmse, 100 * tensor.relative_rmse,
                          tensor.max_error);
    }
    text += "\n";
  }
  const Sizes sizes = sizes_of(tensors);
  return text + fmt::format("\n{}: {} tensors, {:.2f} MB -> {:.2f} MB, {:.2f} bits per weight\n",
                            settings.quantize.output.string(), tensors.size(),
                            static_cast<double>(sizes.before) / 1e6, static_cast<double>(sizes.after) / 1e6,
                            sizes.bits_per_weight());
}

nlohmann::ordered_json report_json(const Settings& settings, const std::vector<QuantizedTensor>& tensors,
                                   const std::vector<std::string>& warnings) {
  const Sizes sizes = sizes_of(tensors);
  nlohmann::ordered_json json = {{"input", settings.engine.model.string()},
                                 {"output", settings.quantize.output.string()},
                                 {"type", settings.quantize.type},
                                 {"bytes_before", sizes.before},
                                 {"bytes", sizes.after},
                                 {"weights", sizes.weights},
                                 {"bits_per_weight", sizes.bits_per_weight()},
                                 {"warnings", warnings}};
  json["tensors"] = nlohmann::ordered_json::array();
  for (const QuantizedTensor& tensor : tensors) {
    json["tensors"].push_back({{"name", tensor.name},
                               {"shape", tensor.shape},
                               {"from", dtype_name(tensor.from)},
                               {"to", dtype_name(tensor.to)},
                               {"bytes_before", tensor.bytes_before},
                               {"bytes", tensor.bytes},
                               {"rmse", tensor.rmse},
                               {"relative_rmse", tensor.relative_rmse},
                               {"max_error", tensor.max_error}});
  }
  return json;
}

}  // namespace

Status run_quantize(const Settings& settings) {
  OUTRIDER_RETURN_IF_ERROR(check_usage(settings));
  OUTRIDER_TRY(const GgufModel model, open_as_gguf(settings.engine.model));
  OUTRIDER_RETURN_IF_ERROR(check_output(settings.quantize.output, model, settings.quantize.force));
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  ThreadPool pool(settings.engine.threads > 0 ? settings.engine.threads : std::max(cores, 1));
  QuantizeOptions options{.type = *parse_dtype(settings.quantize.type), .pool = &pool, .on_tensor = nullptr};

  const std::vector<QuantizedTensor> plan = plan_quantization(model, options.type);
  const std::vector<std::string> warnings = warnings_of(model, plan);
  for (const std::string& warning : warnings) write_error_line("warning: " + warning);
  std::vector<QuantizedTensor> tensors;
  {
    ProgressBar progress("quantising", static_cast<int64_t>(plan.size()));
    options.on_tensor = [&](const QuantizedTensor&) { progress.advance(); };
    OUTRIDER_TRY(tensors, write_quantized(model, settings.quantize.output, options));
  }
  write_output(settings.json ? json_line(report_json(settings, tensors, warnings))
                             : report_text(settings, tensors));
  return {};
}

}  // namespace outrider
