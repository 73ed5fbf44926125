// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "formats/stored_tensor.h"
#include "outrider/result.h"
#include "platform/mapped_file.h"

namespace outrider {

// The tensors of a Hugging Face directory: model.safetensors or pytorch_model.bin, or the shards that
// model.safetensors.index.json or pytorch_model.bin.index.json lists. Safetensors are taken where both are
// there.
class TensorDirectory {
 public:
  // Adds the mapped files to `files`, which must outlive views into them.
  // Errors: no such file, the errors of parse_safetensors() and parse_torch_file(), a bad index, a tensor in
  // two shards.
  static Result<TensorDirectory> open(const std::filesystem::path& directory, std::vector<MappedFile>& files);
  // The tensors of one file of the directory, safetensors by its extension or else a file of torch.save().
  static Result<TensorDirectory> open_file(const std::filesystem::path& directory,
                                           std::vector<MappedFile>& files, const std::string& file_name);

  // Error: the tensor is missing, or has a type that cannot hold weights.
  Result<TensorView> find(const std::string& name) const;

  const StoredTensors& tensors() const { return tensors_; }
  const std::map<std::string, std::string, std::less<>>& metadata() const { return metadata_; }
  std::string_view format() const { return format_; }  // "safetensors" or "pytorch"

 private:
  explicit TensorDirectory(std::filesystem::path directory) : directory_(std::move(directory)) {}

  Error fail(const std::string& what) const { return input_error(directory_.string() + ": " + what); }
  Status open_shard(const std::string& file_name, std::vector<MappedFile>& files);
  Status open_shards(const std::filesystem::path& index, std::vector<MappedFile>& files);

  std::filesystem::path directory_;
  std::string_view format_;
  StoredTensors tensors_;
  std::map<std::string, std::string, std::less<>> metadata_;
};

}  // namespace outrider
