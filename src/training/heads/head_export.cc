// SPDX-License-Identifier: Apache-2.0
#include "training/heads/head_export.h"

#include <ATen/ATen.h>

#include <utility>

#include "device/durable_file.h"
#include "training/safetensors_file.h"

namespace outrider::training {

Status write_head(const DraftHead& head, const FrozenTarget& target, const std::filesystem::path& folder) {
  HeadExport exported = head.exported();
  exported.config["outrider_target"] = target.fingerprint();
  exported.config["outrider_target_name"] = target.name();
  for (auto& [name, tensor] : exported.tensors) {
    if (tensor.is_floating_point()) tensor = tensor.detach().to(at::kBFloat16).contiguous();
  }
  OUTRIDER_RETURN_IF_ERROR(make_directories(folder));
  OUTRIDER_RETURN_IF_ERROR(write_durably(folder / "config.json", exported.config.dump(2) + "\n"));
  return write_safetensors(folder / "model.safetensors", exported.tensors);
}

}  // namespace outrider::training
