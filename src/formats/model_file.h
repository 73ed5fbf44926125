// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/model_config.h"
#include "outrider/result.h"
#include "platform/mapped_file.h"
#include "tensor/tensor_view.h"
#include "tokenizer/tokenizer_spec.h"

namespace outrider {

class JsonFile;
struct StoredFiles;

// An opened model with one set of names for all formats. open_model() has checked the extents, shapes and
// types of everything in it. Views stay valid as long as `storage` lives.
//
// Tensor names are Hugging Face's ("model.layers.0.self_attn.q_proj.weight", "model.embed_tokens.weight",
// "model.norm.weight", "lm_head.weight"); a GGUF file is presented under the same names. Rows of q and k are
// in the rotate-half order of Hugging Face in both cases (Llama GGUF files interleave; open_model undoes
// that).
struct ModelFile {
  std::filesystem::path path;
  std::string format;  // "safetensors", "pytorch", "gguf" or "random"
  ModelConfig config;
  std::map<std::string, TensorView> tensors;
  TokenizerSpec tokenizer;
  std::string chat_template;                    // Jinja source; empty when there is none
  std::string chat_template_file;               // the file that holds it, for messages
  std::string chat_template_problem;            // why it cannot be read; empty where it can
  std::string bos_token, eos_token;             // spellings, for the chat template
  std::map<std::string, std::string> metadata;  // for `inspect`: key -> short printable value
  std::shared_ptr<const JsonFile> document;     // config.json; null: a GGUF file or a shape
  std::shared_ptr<const StoredFiles> stored;    // the files as they were opened; null: a shape
  std::shared_ptr<void> storage;                // keeps mapped files and converted rows alive
  std::vector<const MappedFile*> files;         // the mapped files of `storage`; none: random weights

  // Releases the tensor's pages from memory if they belong to a mapped file; reading them again loads them
  // again.
  void drop_pages(const TensorView& tensor) const;
  // Error: a mapped file has changed since it was opened, so that its tensors may not be what they were.
  Status check_files() const;
  // Names the contents of all files by sizes and times of last changes, or by the shape. Other contents have
  // another name.
  // nullopt: a file was changed so recently that another change could leave the same name.
  std::optional<std::string> contents_name() const;
};

// Opens a Hugging Face directory, a .gguf file or a shape (formats/random_model.h). Defined in open_model.cc.
// Errors: no such file, unknown format, unsupported family / dtype / tokenizer (named, with the list of what
// is supported), malformed contents, missing or mis-shaped tensors.
Result<ModelFile> open_model(const std::filesystem::path& path);

// The model in files that have been opened before (formats/stored_files.h).
Result<ModelFile> open_model(std::shared_ptr<const StoredFiles> files);

// As open_model(), but a Hugging Face directory needs no weights and no tokenizer: what is missing stays
// empty.
Result<ModelFile> describe_model(const std::filesystem::path& path);

}  // namespace outrider
