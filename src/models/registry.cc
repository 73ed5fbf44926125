// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <new>
#include <string>
#include <string_view>

#include "base/check.h"
#include "models/llama.h"
#include "models/mistral.h"
#include "models/model.h"
#include "models/qwen2.h"
#include "models/qwen3.h"

namespace outrider {
namespace {

struct Family {
  std::string_view name;  // ModelConfig::family
  Result<std::unique_ptr<Model>> (*load)(const ModelFile& file, const ModelOptions& options);
};

constexpr std::array kFamilies = {
    Family{"llama", load_llama},
    Family{"mistral", load_mistral},
    Family{"qwen2", load_qwen2},
    Family{"qwen3", load_qwen3},
};

}  // namespace

Result<std::unique_ptr<Model>> Model::load(const ModelFile& file, const ModelOptions& options) {
  OUTRIDER_CHECK(options.kernels != nullptr && options.pool != nullptr);
  const auto family = std::ranges::find(kFamilies, file.config.family, &Family::name);
  if (family == kFamilies.end()) {
    std::string names;
    for (const Family& known : kFamilies) names += (names.empty() ? "" : ", ") + std::string(known.name);
    return input_error(file.path.string() + ": expected a model family of " + names + ", found " +
                       file.config.family);
  }
  try {
    return family->load(file, options);
  } catch (const std::bad_alloc&) {
    return resource_error(
        file.path.string() +
        ": not enough memory for its weights; choose a smaller model, or a smaller weight type");
  }
}

}  // namespace outrider
