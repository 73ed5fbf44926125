// SPDX-License-Identifier: Apache-2.0
#include "hub/remote/hub_repository.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "base/json_reader.h"

namespace outrider {
namespace {

constexpr int kMaxDepth = 32;
constexpr size_t kMaxFiles = 100'000;
constexpr size_t kMaxPath = 512;

bool is_safe_path(std::string_view path) {
  const auto is_printable = [](char c) { return c > ' ' && c <= '~' && c != '\\'; };
  if (path.empty() || path.size() > kMaxPath || !std::ranges::all_of(path, is_printable)) return false;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    if (end == begin || path[begin] == '.') return false;  // empty, "..", or hidden
    begin = end + 1;
  }
  return true;
}

// LFS files have a SHA-256, others the name of their git blob.
Result<std::optional<Checksum>> checksum_at(const JsonField& sibling) {
  if (const auto lfs = sibling.find("lfs")) {
    OUTRIDER_TRY(const std::string_view sum, lfs->string_at("sha256", ""));
    if (is_hex_digest(sum, 32)) return std::optional<Checksum>({ChecksumKind::kSha256, std::string(sum)});
  }
  OUTRIDER_TRY(const std::string_view blob, sibling.string_at("blobId", ""));
  if (is_hex_digest(blob, 20)) return std::optional<Checksum>({ChecksumKind::kGitBlob, std::string(blob)});
  return std::optional<Checksum>();
}

Status read_sibling(const JsonField& sibling, HubRepository& repository) {
  OUTRIDER_TRY(const JsonField name, sibling.at("rfilename"));
  OUTRIDER_TRY(const std::string_view path, name.string());
  if (!is_safe_path(path)) return {};
  OUTRIDER_TRY(std::optional<Checksum> checksum, checksum_at(sibling));
  const auto size = sibling.find("size");
  if (!checksum || !size) return {};
  OUTRIDER_TRY(const int64_t bytes, size->integer(0, int64_t{1} << 50));
  repository.files.push_back({.path = std::string(path), .bytes = bytes, .checksum = *std::move(checksum)});
  return {};
}

}  // namespace

const HubFile* HubRepository::find(std::string_view path) const {
  const auto found = std::ranges::find(files, path, &HubFile::path);
  return found == files.end() ? nullptr : &*found;
}

Result<HubRepository> parse_hub_repository(std::string_view json) {
  OUTRIDER_TRY(const JsonDocument document, JsonDocument::parse(json, kMaxDepth));
  OUTRIDER_TRY(const JsonField sha, document.root().at("sha"));
  OUTRIDER_TRY(const std::string_view commit, sha.string());
  if (!is_hex_digest(commit, 20)) return sha.expected("a commit of 40 hexadecimal digits");
  HubRepository repository{.commit = std::string(commit), .files = {}};
  OUTRIDER_TRY(const JsonField siblings, document.root().at("siblings"));
  OUTRIDER_TRY(const std::vector<JsonField> items, siblings.items(kMaxFiles));
  for (const JsonField& sibling : items) OUTRIDER_RETURN_IF_ERROR(read_sibling(sibling, repository));
  return repository;
}

Result<std::vector<std::string>> parse_weight_index(std::string_view json) {
  constexpr size_t kMaxTensors = 1'000'000;
  OUTRIDER_TRY(const JsonDocument document, JsonDocument::parse(json, kMaxDepth));
  OUTRIDER_TRY(const JsonField map, document.root().at("weight_map"));
  OUTRIDER_TRY(const std::vector<JsonField> members, map.members(kMaxTensors));
  std::set<std::string, std::less<>> names;
  for (const JsonField& member : members) {
    OUTRIDER_TRY(const std::string_view name, member.string());
    names.emplace(name);
  }
  return std::vector<std::string>(names.begin(), names.end());
}

}  // namespace outrider
