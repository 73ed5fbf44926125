// SPDX-License-Identifier: Apache-2.0
// Which tensors a configuration calls for, whatever the container.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "formats/model_config.h"
#include "formats/model_file.h"
#include "outrider/result.h"
#include "platform/mapped_file.h"
#include "tensor/buffer.h"
#include "tensor/tensor_view.h"

namespace outrider {

struct ExpectedTensor {
  std::string name;  // Hugging Face spelling
  Shape shape;
};

// Every tensor the forward pass of `config` reads. Precondition: validate(config).ok().
std::vector<ExpectedTensor> expected_tensors(const ModelConfig& config);

// What a ModelFile keeps alive.
struct ModelStorage {
  std::vector<MappedFile> files;
  std::vector<std::filesystem::path> paths;  // of GGUF files among them
  std::vector<Buffer> copies;  // rows put into another order, tensors that were misaligned in the file
};

// The tensor, or a copy of it in `storage` if its data are not aligned to its elements.
TensorView aligned(TensorView view, ModelStorage& storage);

// Finds a tensor by its Hugging Face name; an error says that it is missing or of a type that cannot hold
// weights.
using TensorLookup = std::function<Result<TensorView>(const std::string& name)>;

// Fills model->tensors with what model->config calls for, and checks shapes, types, and that the tokenizer's
// ids and the end-of-text ids fit the vocabulary. Tensors not aligned to their elements are copied into
// `storage`.
Status attach_tensors(const TensorLookup& lookup, ModelStorage* storage, ModelFile* model);

}  // namespace outrider
