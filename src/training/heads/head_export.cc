// SPDX-License-Identifier: Apache-2.0
#include "training/heads/head_export.h"

#include <ATen/ATen.h>

#include <utility>

#include "device/durable_file.h"
#include "training/safetensors_file.h"

namespace outrider::training {

Status write_head(const DraftHead& head, const FrozenTarget& target, const nlohmann::json& learned,
                  const std::filesystem::path& folder) {
  HeadExport exported = head.exported();
  exported.config.update(learned);
  exported.config["outrider_target"] = target.fingerprint();
  exported.config["outrider_target_name"] = target.name();
  for (auto& [name, tensor] : exported.tensors) {
    if (tensor.is_floating_point()) tensor = tensor.detach().to(at::kBFloat16).contiguous();
  }
  OUTRIDER_RETURN_IF_ERROR(make_directories(folder));
  OUTRIDER_RETURN_IF_ERROR(write_durably(folder / "config.json", exported.config.dump(2) + "\n"));
  return write_safetensors(folder / "model.safetensors", exported.tensors);
}

Status move_head(const std::filesystem::path& from, const std::filesystem::path& to) {
  for (const char* name : {"config.json", "model.safetensors"}) {
    std::error_code error;
    std::filesystem::rename(from / name, to / name, error);
    if (error) return io_error("cannot move " + (from / name).string() + ": " + error.message());
  }
  std::error_code ignored;
  std::filesystem::remove_all(from, ignored);
  return sync_directory(to);
}

}  // namespace outrider::training
