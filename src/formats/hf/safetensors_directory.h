// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "formats/hf/safetensors.h"
#include "outrider/result.h"
#include "platform/mapped_file.h"

namespace outrider {

// The tensors of a Hugging Face directory: model.safetensors, or model.safetensors.index.json and its shards.
class SafetensorsDirectory {
 public:
  // Adds the mapped files to `files`, which must outlive views into them. A `file_name` other than
  // model.safetensors has no shards.
  // Errors: no such file, those of parse_safetensors(), a bad index, a tensor in two shards.
  static Result<SafetensorsDirectory> open(const std::filesystem::path& directory,
                                           std::vector<MappedFile>& files,
                                           const std::string& file_name = "model.safetensors");

  // Error: the tensor is missing, or has a type that cannot hold weights.
  Result<TensorView> find(const std::string& name) const;

  const std::map<std::string, SafetensorsEntry, std::less<>>& tensors() const { return tensors_; }
  const std::map<std::string, std::string, std::less<>>& metadata() const { return metadata_; }

 private:
  explicit SafetensorsDirectory(std::filesystem::path directory) : directory_(std::move(directory)) {}

  Error fail(const std::string& what) const { return input_error(directory_.string() + ": " + what); }
  Status open_shard(const std::string& file_name, std::vector<MappedFile>& files);
  Status open_shards(const std::filesystem::path& index, std::vector<MappedFile>& files);

  std::filesystem::path directory_;
  std::map<std::string, SafetensorsEntry, std::less<>> tensors_;
  std::map<std::string, std::string, std::less<>> metadata_;
};

}  // namespace outrider
