// SPDX-License-Identifier: Apache-2.0
// The tensors that a configuration calls for, independent of the file format.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "formats/model_config.h"
#include "formats/model_file.h"
#include "formats/tensor_list.h"
#include "outrider/result.h"
#include "platform/mapped_file.h"
#include "tensor/buffer.h"
#include "tensor/tensor_view.h"

namespace outrider {

// Every tensor that the forward pass of `config` reads. Precondition: validate(config).ok().
std::vector<ExpectedTensor> expected_tensors(const ModelConfig& config);

// The tensors of one layer among them.
std::vector<ExpectedTensor> expected_layer_tensors(const ModelConfig& config, int64_t layer);

// The memory that the views of a ModelFile point into.
struct ModelStorage {
  std::vector<MappedFile> files;
  std::vector<std::filesystem::path> paths;               // the GGUF files among them
  std::vector<std::unique_ptr<const RowSource>> sources;  // of quantised matrices
  std::vector<Buffer> copies;  // tensors with reordered rows, and tensors that were misaligned in the file

  // Fills model.files. Precondition: `files` is complete.
  void list_files(ModelFile& model) const {
    for (const MappedFile& file : files) model.files.push_back(&file);
  }
};

// The tensor, or a copy of it in `storage` if its data are not aligned to its elements.
TensorView aligned(TensorView view, ModelStorage& storage);

// A copy of `count` rows of a matrix, or elements of a vector: number i is number row_of(i) of `view`.
TensorView copy_rows(const TensorView& view, int64_t count, const std::function<int64_t(int64_t)>& row_of,
                     ModelStorage* storage);

// Finds a tensor by its Hugging Face name. Error: it is missing, or has a type that cannot hold weights.
using TensorLookup = std::function<Result<TensorView>(const std::string& name)>;

// Adds the expected tensors to model->tensors. Tensors that are not aligned to their elements are copied into
// `storage`. Errors: a missing tensor, a wrong shape or type.
Status attach_expected(std::vector<ExpectedTensor> expected, const TensorLookup& lookup,
                       ModelStorage* storage, ModelFile* model);

// Fills model->tensors with the tensors that model->config calls for. Errors also: a tokenizer with
// more tokens than the vocabulary.
Status attach_tensors(const TensorLookup& lookup, ModelStorage* storage, ModelFile* model);

}  // namespace outrider
