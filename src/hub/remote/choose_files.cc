// SPDX-License-Identifier: Apache-2.0
#include "hub/remote/choose_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "base/quote.h"
#include "hub/remote/quant_name.h"

namespace outrider {
namespace {

constexpr std::string_view kSafetensorsIndex = "model.safetensors.index.json";
constexpr std::string_view kTorchIndex = "pytorch_model.bin.index.json";
constexpr std::array<std::string_view, 2> kSingleWeights = {"model.safetensors", "pytorch_model.bin"};
constexpr std::array<std::string_view, 10> kSmallFiles = {
    "config.json",     "generation_config.json",  "tokenizer.json",    "tokenizer_config.json",
    "tokenizer.model", "special_tokens_map.json", "added_tokens.json", "vocab.json",
    "merges.txt",      "chat_template.jinja"};
// The quants that people take, from the one that is best on a machine with enough memory to the smallest.
constexpr std::array<std::string_view, 10> kSuggested = {"Q4_K_M", "Q4_K_S", "Q4_1",   "Q4_0",    "IQ4_XS",
                                                         "IQ4_NL", "Q3_K_M", "Q3_K_S", "IQ3_XXS", "Q2_K"};

std::string listed(const std::vector<GgufVariant>& variants) {
  std::string text;
  for (const GgufVariant& variant : variants) {
    const std::string& name = variant.quant.empty() ? variant.files.front().path : variant.quant;
    text += fmt::format("{}{} ({})", text.empty() ? "" : ", ", name, size_text(variant.bytes));
  }
  return text;
}

FileChoice choice_of(const GgufVariant& variant, std::string reason = {}) {
  return {.files = variant.files, .main_file = variant.files.front().path, .reason = std::move(reason)};
}

bool is_wanted(const GgufVariant& variant, std::string_view wanted) {
  if (upper_case(wanted) == variant.quant) return true;
  return std::ranges::any_of(variant.files, [&](const HubFile& file) {
    return file.path == wanted || std::string_view(file.path).substr(file.path.rfind('/') + 1) == wanted;
  });
}

const GgufVariant* with_quant(const std::vector<GgufVariant>& variants, std::string_view quant) {
  const auto found = std::ranges::find(variants, quant, &GgufVariant::quant);
  return found == variants.end() ? nullptr : &*found;
}

// nullptr: none fits.
const GgufVariant* suggestion(const std::vector<GgufVariant>& variants, int64_t memory_bytes) {
  const int64_t enough = memory_bytes / 3 * 2;
  if (const GgufVariant* exact = with_quant(variants, "Q8_0");
      exact != nullptr && exact->bytes <= memory_bytes / 8)
    return exact;
  for (const std::string_view quant : kSuggested) {
    if (const GgufVariant* variant = with_quant(variants, quant);
        variant != nullptr && variant->bytes <= enough)
      return variant;
  }
  const auto largest = std::find_if(variants.rbegin(), variants.rend(),
                                    [&](const GgufVariant& variant) { return variant.bytes <= enough; });
  return largest == variants.rend() ? nullptr : &*largest;
}

}  // namespace

std::vector<GgufVariant> gguf_variants(const HubRepository& repository) {
  std::map<std::string, std::map<int, HubFile>> shards;  // by the name without its number
  std::map<std::string, size_t> counts;
  for (const HubFile& file : repository.files) {
    if (!is_model_file_name(file.path)) continue;
    const auto place = shard_place(file.path);
    const std::string key = place ? place->stem : file.path;
    shards[key].emplace(place ? place->index : 1, file);
    counts[key] = place ? static_cast<size_t>(place->count) : 1;
  }
  std::vector<GgufVariant> variants;
  for (auto& [key, parts] : shards) {
    if (parts.size() != counts[key]) continue;
    GgufVariant variant{.quant = quant_of_file_name(parts.begin()->second.path), .files = {}};
    for (auto& [index, file] : parts) {
      variant.bytes += file.bytes;
      variant.files.push_back(std::move(file));
    }
    variants.push_back(std::move(variant));
  }
  std::ranges::stable_sort(variants, {}, &GgufVariant::bytes);
  return variants;
}

const HubFile* weight_index_of(const HubRepository& repository) {
  const HubFile* index = repository.find(kSafetensorsIndex);
  if (index == nullptr && repository.find(kSingleWeights[0]) == nullptr) index = repository.find(kTorchIndex);
  return index;
}

bool is_model_folder(const HubRepository& repository) {
  if (repository.find("config.json") == nullptr) return false;
  return weight_index_of(repository) != nullptr ||
         std::ranges::any_of(kSingleWeights, [&](auto name) { return repository.find(name) != nullptr; });
}

Result<FileChoice> choose_folder(const HubRepository& repository, const std::vector<std::string>& indexed) {
  FileChoice choice;
  for (const std::string_view name : kSmallFiles) {
    if (const HubFile* file = repository.find(name)) choice.files.push_back(*file);
  }
  if (indexed.empty()) {
    const HubFile* weights = repository.find(kSingleWeights[0]);
    if (weights == nullptr) weights = repository.find(kSingleWeights[1]);
    if (weights == nullptr) return input_error("expected weights in the repository, found none");
    choice.files.push_back(*weights);
    return choice;
  }
  choice.files.push_back(*weight_index_of(repository));
  for (const std::string& name : indexed) {
    const HubFile* shard = repository.find(name);
    if (shard == nullptr)
      return input_error(fmt::format("the index names {}, which the repository has not", quote(name)));
    choice.files.push_back(*shard);
  }
  return choice;
}

Result<FileChoice> choose_gguf(const HubRepository& repository, std::string_view wanted,
                               int64_t memory_bytes) {
  const std::vector<GgufVariant> variants = gguf_variants(repository);
  if (variants.empty())
    return input_error("expected a GGUF file, or config.json with weights; found neither in the repository");
  if (!wanted.empty()) {
    const auto matches = [&](const GgufVariant& variant) { return is_wanted(variant, wanted); };
    const auto found = std::ranges::find_if(variants, matches);
    if (found == variants.end()) {
      return usage_error(fmt::format("expected a quant or file of the repository, found {}; there are {}",
                                     quote(wanted), listed(variants)));
    }
    if (std::ranges::count_if(variants, matches) == 1) return choice_of(*found);
    return usage_error(
        fmt::format("{} names several files; name one of {}", quote(wanted), listed(variants)));
  }
  if (variants.size() == 1) return choice_of(variants.front());
  const GgufVariant* best = suggestion(variants, memory_bytes);
  if (best == nullptr) {
    return resource_error(
        fmt::format("expected a model within two thirds of this machine's memory, {}; there are {}; add "
                    ":QUANT to take one",
                    size_text(memory_bytes), listed(variants)));
  }
  return choice_of(*best, fmt::format("{} suits this machine's memory of {}; there are {}",
                                      best->quant.empty() ? best->files.front().path : best->quant,
                                      size_text(memory_bytes), listed(variants)));
}

}  // namespace outrider
