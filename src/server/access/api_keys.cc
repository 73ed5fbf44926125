// SPDX-License-Identifier: Apache-2.0
#include "server/access/api_keys.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include "base/check.h"
#include "base/white_space.h"
#include "server/access/request_header.h"

namespace outrider {
namespace {

constexpr size_t kMaxFile = 1 << 20;
constexpr size_t kMaxName = 64;

struct NamedKey {
  std::string_view key;
  std::string_view name;  // empty: none
};

// "KEY NAME" or "KEY".
NamedKey parts_of(std::string_view line) {
  const size_t end = std::min(line.find_first_of(" \t"), line.size());
  return {line.substr(0, end), trimmed(line.substr(end))};
}

bool is_key(std::string_view key, size_t min_length) {
  const auto is_visible = [](char c) { return c > 0x20 && c < 0x7f; };
  return key.size() >= min_length && key.size() <= 512 && std::all_of(key.begin(), key.end(), is_visible);
}

}  // namespace

ApiKeys::Digest ApiKeys::digest_of(std::string_view key) {
  Digest digest = {};
  const int done = EVP_Digest(key.data(), key.size(), digest.data(), nullptr, EVP_sha256(), nullptr);
  OUTRIDER_CHECK(done == 1);
  return digest;
}

Result<ApiKeys> ApiKeys::parse(std::string_view text, std::string_view name, size_t min_length) {
  ApiKeys keys;
  for (int line = 1; !text.empty(); ++line) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view content = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (content.empty() || content.front() == '#') continue;
    const auto [key, key_name] = parts_of(content);
    if (!is_key(key, min_length)) {
      return input_error(
          fmt::format("{}:{}: expected a key of {} to 512 visible ASCII characters without spaces; openssl "
                      "rand -hex 32 makes one",
                      name, line, min_length));
    }
    if (!key_name.empty() && (key_name.size() > kMaxName || !is_request_id(key_name))) {
      return input_error(
          fmt::format("{}:{}: expected a name of at most {} letters, digits and ._- after the key", name,
                      line, kMaxName));
    }
    keys.has_short_ = keys.has_short_ || key.size() < kMinLength;
    keys.digests_.push_back(digest_of(key));
    keys.names_.emplace_back(key_name);
  }
  if (keys.digests_.empty())
    return input_error(fmt::format("{}: expected one key per line, found none", name));
  return keys;
}

Result<ApiKeys> ApiKeys::read(const std::filesystem::path& path) {
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0) {
    return io_error(fmt::format("cannot read the keys in {}: {}", path.string(), std::strerror(errno)));
  }
  if ((info.st_mode & S_IRWXO) != 0) {
    return input_error(
        fmt::format("{}: expected keys that only their owner can read; chmod 600 the file", path.string()));
  }
  std::ifstream file(path, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(file), {});
  if (file.bad() || !file.is_open())
    return io_error(fmt::format("cannot read the keys in {}", path.string()));
  if (text.size() > kMaxFile)
    return input_error(fmt::format("{}: expected at most 1 MiB of keys", path.string()));
  auto keys = parse(text, path.string());
  OPENSSL_cleanse(text.data(), text.size());
  return keys;
}

Result<ApiKeys> ApiKeys::collect(const std::filesystem::path& file, std::span<const std::string> given) {
  ApiKeys keys;
  if (!file.empty()) {
    OUTRIDER_TRY(keys, read(file));
  }
  for (const std::string& text : given) {
    OUTRIDER_TRY(const ApiKeys one, parse(text, "--api-key", 1));
    keys.has_short_ = keys.has_short_ || one.has_short_;
    keys.digests_.insert(keys.digests_.end(), one.digests_.begin(), one.digests_.end());
    keys.names_.insert(keys.names_.end(), one.names_.begin(), one.names_.end());
  }
  return keys;
}

// Compares with all digests, so that the time does not tell which one is alike.
size_t ApiKeys::find(const Digest& digest) const {
  size_t found = digests_.size();
  for (size_t i = 0; i < digests_.size(); ++i) {
    const bool is_same = CRYPTO_memcmp(digests_[i].data(), digest.data(), digest.size()) == 0;
    found = is_same ? i : found;
  }
  return found;
}

std::string ApiKeys::name_of(std::string_view key) const {
  const size_t place = find(digest_of(key));
  if (place == digests_.size()) return {};
  return names_[place].empty() ? fmt::format("key-{}", place + 1) : names_[place];
}

std::optional<uint64_t> ApiKeys::scope_of(std::string_view key) const {
  if (find(digest_of(key)) == digests_.size()) return std::nullopt;
  const std::string tagged = "outrider prefix cache\n" + std::string(key);
  const Digest scope_digest = digest_of(tagged);
  uint64_t scope = 0;
  std::memcpy(&scope, scope_digest.data(), sizeof(scope));
  return scope;
}

}  // namespace outrider
