// SPDX-License-Identifier: Apache-2.0
// Pairs of matrices by the names of the tensors that they change, before it is known what these are for the
// model.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "formats/model_tensors.h"
#include "outrider/result.h"
#include "tensor/tensor_view.h"

namespace outrider {

struct StoredUpdate {
  std::optional<TensorView> a, b;
  float scale = 1;
};

struct AdapterTensors {
  std::string format;  // see AdapterFile
  // By stored names of tensors: "model.layers.0.mlp.up_proj.weight".
  std::map<std::string, StoredUpdate> updates = {};
};

// Files are added to `storage`. Errors: see open_adapter().
Result<AdapterTensors> read_peft_adapter(const std::filesystem::path& folder, ModelStorage& storage);
// `architecture`: of the model in GGUF files.
Result<AdapterTensors> read_gguf_adapter(const std::filesystem::path& path, std::string_view architecture,
                                         ModelStorage& storage);

}  // namespace outrider
