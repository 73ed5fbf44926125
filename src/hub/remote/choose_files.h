// SPDX-License-Identifier: Apache-2.0
// Which files of a repository make the model that is wanted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hub/remote/hub_repository.h"
#include "outrider/result.h"

namespace outrider {

// One GGUF model of a repository, in one file or in shards.
struct GgufVariant {
  std::string quant;           // "Q4_K_M"; empty: the name says none
  std::vector<HubFile> files;  // shards in their order
  int64_t bytes = 0;
};

struct FileChoice {
  std::vector<HubFile> files;
  std::string main_file;  // the GGUF file that opens the model; empty: the folder does
  std::string reason;     // why this of several; empty: there was no choice
};

// Complete variants by size, the smallest first.
std::vector<GgufVariant> gguf_variants(const HubRepository& repository);

// The index of a folder's weights, which has to be read before choose_folder(); nullptr: there is none.
const HubFile* weight_index_of(const HubRepository& repository);

// Whether the repository is a Hugging Face folder: a configuration and weights beside it.
bool is_model_folder(const HubRepository& repository);

// The configuration, the tokenizer, and the weights that `indexed` names (empty: the one file of weights).
// Precondition: the repository has an index, or `indexed` is empty. Error: a named file is not there.
Result<FileChoice> choose_folder(const HubRepository& repository, const std::vector<std::string>& indexed);

// The variant of this quant or file. Where nothing is wanted, it is the one that suits `memory_bytes`: Q8_0
// if it takes at most an eighth of it, else Q4_K_M and then smaller ones within two thirds. Errors: no such
// variant; none fits; the message lists the variants that there are.
Result<FileChoice> choose_gguf(const HubRepository& repository, std::string_view wanted,
                               int64_t memory_bytes);

}  // namespace outrider
