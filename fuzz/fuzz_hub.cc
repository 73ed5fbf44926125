// SPDX-License-Identifier: Apache-2.0
// Listings of the Hub, indexes of weights, manifests and names -> files. No accepted path leaves its folder.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string_view>

#include "hub/local/model_scan.h"
#include "hub/remote/choose_files.h"
#include "hub/remote/hub_reference.h"
#include "hub/remote/quant_name.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace outrider;  // NOLINT: one function
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto indexed = parse_weight_index(text);
  const auto reference = parse_hub_reference(text);
  if (reference.ok() && reference->repository.find("..") == 0) __builtin_trap();
  if (const auto hex = ollama_weights(text); hex && hex->size() != 64) __builtin_trap();
  if (quant_of_file_name(text).size() > size) __builtin_trap();
  const auto repository = parse_hub_repository(text);
  if (!repository.ok()) return 0;
  for (const HubFile& file : repository->files) {
    const std::filesystem::path inside = (std::filesystem::path("/folder") / file.path).lexically_normal();
    if (!inside.string().starts_with("/folder/") || file.bytes < 0) __builtin_trap();
  }
  const auto choice = choose_gguf(*repository, "", int64_t{1} << 34);
  if (choice.ok() && choice->files.empty()) __builtin_trap();
  if (indexed.ok() && weight_index_of(*repository) != nullptr) {
    const auto folder = choose_folder(*repository, *indexed);
    if (folder.ok() && folder->files.empty()) __builtin_trap();
  }
  return 0;
}
