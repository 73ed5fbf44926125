// SPDX-License-Identifier: Apache-2.0
// The layouts in which programs keep models. Folders that are missing hold nothing.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hub/local/local_model.h"

namespace outrider {

// ORG/REPO/files: Outrider's own and LM Studio's.
void scan_repositories(const std::filesystem::path& folder, std::string_view place,
                       std::vector<LocalModel>& models);

// models--ORG--REPO/snapshots/COMMIT/links, of huggingface_hub and new versions of llama.cpp. Only the
// snapshot that refs/main names counts, or the last by name.
void scan_hub_cache(const std::filesystem::path& folder, std::string_view place,
                    std::vector<LocalModel>& models);

// GGUF files beside one another, of old versions of llama.cpp.
void scan_files(const std::filesystem::path& folder, std::string_view place, std::vector<LocalModel>& models);

// manifests/HOST/NAMESPACE/MODEL/TAG, each naming a GGUF file as blobs/sha256-HEX: Ollama's.
void scan_ollama(const std::filesystem::path& folder, std::vector<LocalModel>& models);

// The digits of the blob with the weights, from a manifest; nullopt: it names none.
std::optional<std::string> ollama_weights(std::string_view manifest);

}  // namespace outrider
