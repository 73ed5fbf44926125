// SPDX-License-Identifier: Apache-2.0
#include "server/http/api_keys.h"

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

namespace outrider {
namespace {

constexpr size_t kMaxFile = 1 << 20;

}  // namespace

ApiKeys::Digest ApiKeys::digest_of(std::string_view key) {
  Digest digest = {};
  const int done = EVP_Digest(key.data(), key.size(), digest.data(), nullptr, EVP_sha256(), nullptr);
  OUTRIDER_CHECK(done == 1);
  return digest;
}

Result<ApiKeys> ApiKeys::parse(std::string_view text, std::string_view name) {
  ApiKeys keys;
  for (int line = 1; !text.empty(); ++line) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view key = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (key.empty() || key.front() == '#') continue;
    const auto is_visible = [](char c) { return c > 0x20 && c < 0x7f; };
    if (key.size() < kMinLength || key.size() > 512 || !std::all_of(key.begin(), key.end(), is_visible)) {
      return input_error(
          fmt::format("{}:{}: expected a key of {} to 512 visible ASCII characters without spaces; openssl "
                      "rand -hex 32 makes one",
                      name, line, kMinLength));
    }
    keys.digests_.push_back(digest_of(key));
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
    OUTRIDER_TRY(const ApiKeys one, parse(text, "--api-key"));
    keys.digests_.insert(keys.digests_.end(), one.digests_.begin(), one.digests_.end());
  }
  return keys;
}

std::optional<uint64_t> ApiKeys::scope_of(std::string_view key) const {
  const Digest digest = digest_of(key);
  unsigned found = 0;
  for (const Digest& known : digests_) {
    found |= static_cast<unsigned>(CRYPTO_memcmp(known.data(), digest.data(), digest.size()) == 0);
  }
  if (found == 0) return std::nullopt;
  const std::string tagged = "outrider prefix cache\n" + std::string(key);
  const Digest scope_digest = digest_of(tagged);
  uint64_t scope = 0;
  std::memcpy(&scope, scope_digest.data(), sizeof(scope));
  return scope;
}

}  // namespace outrider
