// SPDX-License-Identifier: Apache-2.0
#include <string_view>

#include "base/quote.h"
#include "formats/adapters/adapter_tensors.h"
#include "formats/gguf/gguf.h"
#include "formats/gguf/gguf_metadata.h"

namespace outrider {
namespace {

Status check_gguf_kind(const GgufMetadata& metadata, std::string_view architecture) {
  OUTRIDER_TRY(const auto type, metadata.string("general.type"));
  OUTRIDER_TRY(const auto kind, metadata.string("adapter.type"));
  if (type != "adapter" || kind != "lora") {
    return metadata.fail("expected general.type \"adapter\" and adapter.type \"lora\", found " +
                         quote(type.value_or("none")) + " and " + quote(kind.value_or("none")));
  }
  OUTRIDER_TRY(const auto of, metadata.string("general.architecture"));
  if (of != architecture) {
    return metadata.fail("an adapter of the architecture " + quote(of.value_or("none")) +
                         " does not fit a model of the architecture " + quote(architecture));
  }
  if (metadata.has("adapter.alora.invocation_tokens"))
    return metadata.fail("adapters with invocation tokens are not supported; only plain LoRA is");
  return {};
}

}  // namespace

Result<AdapterTensors> read_gguf_adapter(const std::filesystem::path& path, std::string_view architecture,
                                         ModelStorage& storage) {
  OUTRIDER_TRY(MappedFile mapped, MappedFile::open(path));
  const std::string name = path.string();
  OUTRIDER_TRY(const GgufFile file, parse_gguf(mapped.bytes(), name));
  storage.files.push_back(std::move(mapped));
  const GgufMetadata metadata(file, name);
  OUTRIDER_RETURN_IF_ERROR(check_gguf_kind(metadata, architecture));
  OUTRIDER_TRY(const auto alpha, metadata.number("adapter.lora.alpha"));
  AdapterTensors adapter{.format = "gguf"};
  for (const auto& [tensor, view] : file.tensors) {
    const bool is_a = tensor.ends_with(".lora_a");
    if (!is_a && !tensor.ends_with(".lora_b"))
      return metadata.fail("tensor " + quote(tensor) +
                           " is no part of a low-rank update; expected .lora_a or .lora_b");
    StoredUpdate& update = adapter.updates[tensor.substr(0, tensor.rfind('.'))];
    (is_a ? update.a : update.b) = view;
    // No alpha, or 0, means that the product is taken as it is.
    if (is_a && !view.shape.empty() && alpha.value_or(0) != 0)
      update.scale = static_cast<float>(*alpha / static_cast<double>(view.shape.front()));
  }
  return adapter;
}

}  // namespace outrider
