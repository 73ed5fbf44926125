// SPDX-License-Identifier: Apache-2.0
#include "formats/fused_tensors.h"

#include <optional>
#include <string_view>
#include <utility>

namespace outrider {
namespace {

// The rows [begin, begin + count) of the `total` rows of a tensor.
struct FusedRows {
  std::string name;
  int64_t begin = 0;
  int64_t count = 0;
  int64_t total = 0;
};

std::optional<FusedRows> fused_rows(const ModelConfig& config, std::string_view name) {
  const int64_t q = config.head_count * config.head_dim;
  const int64_t kv = config.kv_head_count * config.head_dim;
  const int64_t ffn = config.ffn_size;
  const struct {
    std::string_view part, fused;
    FusedRows rows;
  } kParts[] = {{"self_attn.q_proj", "self_attn.qkv_proj", {{}, 0, q, q + 2 * kv}},
                {"self_attn.k_proj", "self_attn.qkv_proj", {{}, q, kv, q + 2 * kv}},
                {"self_attn.v_proj", "self_attn.qkv_proj", {{}, q + kv, kv, q + 2 * kv}},
                {"mlp.gate_proj", "mlp.gate_up_proj", {{}, 0, ffn, 2 * ffn}},
                {"mlp.up_proj", "mlp.gate_up_proj", {{}, ffn, ffn, 2 * ffn}}};
  for (const auto& [part, fused, rows] : kParts) {
    const size_t at = name.find(part);
    if (at == std::string_view::npos) continue;
    FusedRows found = rows;
    found.name.append(name.substr(0, at)).append(fused).append(name.substr(at + part.size()));
    return found;
  }
  return std::nullopt;
}

}  // namespace

TensorLookup split_fused(const ModelConfig& config, TensorLookup stored) {
  return [&config, stored = std::move(stored)](const std::string& name) -> Result<TensorView> {
    const auto rows = fused_rows(config, name);
    if (!rows) return stored(name);
    OUTRIDER_TRY(const TensorView view, stored(rows->name));
    if (view.shape.size() != 2 || view.rows() != rows->total) {
      return input_error("tensor " + rows->name + " must be a matrix of " + std::to_string(rows->total) +
                         " rows by the model's configuration");
    }
    return view.rows_from(rows->begin, rows->count);
  };
}

}  // namespace outrider
