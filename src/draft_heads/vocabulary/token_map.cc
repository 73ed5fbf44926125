// SPDX-License-Identifier: Apache-2.0
#include "draft_heads/vocabulary/token_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>
#include <string_view>

#include "base/json_reader.h"
#include "formats/torch/torch_file.h"
#include "platform/mapped_file.h"

namespace outrider {
namespace {

constexpr size_t kMaxBytes = size_t{32} << 20;

Result<std::vector<int64_t>> read_json_list(std::string_view text) {
  OUTRIDER_TRY(const JsonDocument document, JsonDocument::parse(text, /*max_depth=*/2));
  std::vector<int64_t> ids;
  OUTRIDER_RETURN_IF_ERROR(document.root().each([&](const JsonField& item) -> Status {
    OUTRIDER_TRY(ids.emplace_back(), item.integer());
    return {};
  }));
  return ids;
}

Result<std::vector<int64_t>> read_list(std::span<const std::byte> bytes, const std::string& name) {
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (text.starts_with("PK")) return parse_torch_list(bytes, name);
  auto ids = read_json_list(text);
  if (ids.ok()) return ids;
  return input_error(name +
                     ": expected a JSON array of token ids, or a list of them written by torch.save(): " +
                     ids.error().message);
}

}  // namespace

Result<std::vector<TokenId>> read_token_map(const std::filesystem::path& path) {
  if (path.empty()) return std::vector<TokenId>();
  const std::string name = path.string();
  OUTRIDER_TRY(const MappedFile file, MappedFile::open(path));
  if (file.bytes().size() > kMaxBytes) return input_error(name + ": is larger than the limit of 32 MiB");
  OUTRIDER_TRY(std::vector<int64_t> ids, read_list(file.bytes(), name));
  if (ids.empty()) return input_error(name + ": expected token ids, found none");
  std::ranges::sort(ids);
  constexpr int64_t kMax = std::numeric_limits<TokenId>::max();
  if (ids.front() < 0 || ids.back() > kMax) {
    return input_error(
        fmt::format("{}: expected token ids, found {}", name, ids.front() < 0 ? ids.front() : ids.back()));
  }
  const auto twice = std::ranges::adjacent_find(ids);
  if (twice != ids.end()) return input_error(fmt::format("{}: token {} is there twice", name, *twice));
  return std::vector<TokenId>(ids.begin(), ids.end());
}

}  // namespace outrider
