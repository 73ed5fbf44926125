// SPDX-License-Identifier: Apache-2.0
#include "kv/disk/text_file.h"

#include <string>
#include <system_error>
#include <utility>

#include "kv/disk/page_run.h"
#include "kv/disk/state_bytes.h"

namespace outrider {
namespace {

std::filesystem::path state_path(std::filesystem::path path) { return path += ".state"; }

int64_t bytes_of(const std::filesystem::path& path) {
  std::error_code error;
  const auto bytes = std::filesystem::file_size(path, error);
  return error ? 0 : static_cast<int64_t>(bytes);
}

bool has_states(const KvCache& cache) { return cache.shape().states.layer_count > 0; }

Error damaged(const std::filesystem::path& path) {
  return input_error(path.string() + ": expected a saved text of this model, found damaged bytes");
}

// Adopts the pages of the file that the sequence does not hold yet, as far as there is room.
Status adopt_pages(KvCache& cache, const RunFile& file, const std::filesystem::path& path,
                   KvSequence& pages) {
  const auto page_size = static_cast<size_t>(cache.shape().page_size);
  std::vector<std::byte> buffer(static_cast<size_t>(cache.shape().page_bytes()));
  const auto count = static_cast<int64_t>(file.run().tokens.size() / page_size);
  const bool fits = buffer.empty() || (file.part_bytes() == std::ssize(buffer) && file.part_count() == count);
  if (!fits) return damaged(path);
  for (int64_t page = std::ssize(pages.pages()); page < count && cache.available_pages() > 0; ++page) {
    if (!buffer.empty() && !file.read(page, buffer)) return damaged(path);
    const int32_t taken = cache.reserve_pages(pages, 1).front();
    cache.storage().load(taken * cache.shape().page_size, cache.shape().page_size, buffer.data());
    cache.adopt(pages,
                std::span(file.run().tokens).subspan(static_cast<size_t>(page) * page_size, page_size));
  }
  return {};
}

// The state at the end of the pages.
Status load_state(KvCache& cache, const KvSequence& pages, std::string_view identity,
                  const std::filesystem::path& path) {
  OUTRIDER_TRY(const RunFile file, RunFile::open(path, identity));
  std::vector<std::byte> bytes(static_cast<size_t>(file.part_bytes()));
  const bool is_whole =
      file.part_count() == 1 && std::ranges::equal(file.run().tokens, pages.tokens()) && file.read(0, bytes);
  const auto state = is_whole ? state_of(bytes, cache.states()) : std::nullopt;
  if (!state) return damaged(path);
  cache.checkpoints().load(cache.prefixes().prefix(pages.pages().back()), *state);
  return {};
}

}  // namespace

Result<TextFile> save_text(KvCache& cache, std::span<const TokenId> tokens, uint64_t scope,
                           std::string_view identity, const std::filesystem::path& path) {
  const auto page_size = static_cast<size_t>(cache.shape().page_size);
  const auto count = static_cast<size_t>(cache.count_hits(tokens, scope).usable);
  if (count == 0) return input_error("expected a text in the cache, found none; send it once more");
  const KvSequence pages = cache.open_pages(tokens, scope);
  PageRun run{.id = random_run_id(),
              .scope = scope,
              .tokens = {tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(count * page_size)}};
  const auto page_bytes = static_cast<size_t>(cache.shape().page_bytes());
  RunParts parts{.bytes = std::vector<std::byte>(count * page_bytes),
                 .part_bytes = cache.shape().page_bytes()};
  for (size_t i = 0; i < count; ++i)
    cache.storage().save(int64_t{pages.pages()[i]} * cache.shape().page_size, cache.shape().page_size,
                         parts.bytes.data() + i * page_bytes);
  OUTRIDER_RETURN_IF_ERROR(write_run(path, identity, run, parts));
  TextFile saved{.tokens = run.tokens, .bytes = bytes_of(path)};
  if (!has_states(cache)) return saved;
  run.is_state = true;
  const PrefixId prefix = cache.prefixes().prefix(pages.pages()[count - 1]);
  OUTRIDER_RETURN_IF_ERROR(
      write_run(state_path(path), identity, run, parts_of(cache.checkpoints().save(prefix))));
  saved.bytes += bytes_of(state_path(path));
  return saved;
}

Result<TextFile> load_text(KvCache& cache, uint64_t scope, std::string_view identity,
                           const std::filesystem::path& path) {
  OUTRIDER_TRY(const RunFile file, RunFile::open(path, identity));
  if (file.run().tokens.size() % static_cast<size_t>(cache.shape().page_size) != 0) return damaged(path);
  std::vector<TokenId> tokens = file.run().tokens;
  tokens.push_back(0);  // a text ends after its last page
  KvSequence pages = cache.open_pages(tokens, scope);
  OUTRIDER_RETURN_IF_ERROR(adopt_pages(cache, file, path, pages));
  TextFile loaded{.tokens = {pages.tokens().begin(), pages.tokens().end()}, .bytes = bytes_of(path)};
  if (!has_states(cache) || file.run().tokens.empty()) return loaded;
  if (loaded.tokens.size() < file.run().tokens.size())
    return input_error(path.string() + ": expected room in the cache for " +
                       std::to_string(file.run().tokens.size()) + " tokens and their state, found it for " +
                       std::to_string(loaded.tokens.size()));
  OUTRIDER_RETURN_IF_ERROR(load_state(cache, pages, identity, state_path(path)));
  loaded.bytes += bytes_of(state_path(path));
  return loaded;
}

}  // namespace outrider
