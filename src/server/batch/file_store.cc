// SPDX-License-Identifier: Apache-2.0
#include "server/batch/file_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <optional>
#include <utility>

#include "platform/durable_file.h"
#include "server/api/json_writer.h"
#include "server/api/request_field.h"
#include "server/calls/random_id.h"
#include "server/telemetry/request_log.h"

namespace outrider {
namespace {

constexpr std::string_view kDescription = ".json", kContent = ".jsonl";

std::string description_of(const StoredFile& file) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().member("id", file.id).member("filename", file.name).member("purpose", file.purpose);
  json.member("owner", fmt::format("{:016x}", file.owner)).member("bytes", file.bytes);
  json.member("created_ms", file.created_ms).end_object();
  return text;
}

ApiResult<StoredFile> read_description(std::string_view text) {
  constexpr int64_t kMost = int64_t{1} << 53;
  OUTRIDER_TRY(const RequestBody body, RequestBody::parse(text, 4));
  const RequestField root = body.root();
  StoredFile file;
  for (const auto& [name, member] :
       {std::pair("id", &StoredFile::id), std::pair("filename", &StoredFile::name),
        std::pair("purpose", &StoredFile::purpose)}) {
    OUTRIDER_TRY(const RequestField field, root.at(name));
    OUTRIDER_TRY(file.*member, field.string());
  }
  OUTRIDER_TRY(const RequestField owner, root.at("owner"));
  OUTRIDER_TRY(const std::string digits, owner.string());
  file.owner = std::strtoull(digits.c_str(), nullptr, 16);
  OUTRIDER_TRY(const RequestField bytes, root.at("bytes"));
  OUTRIDER_TRY(file.bytes, bytes.integer(0, kMost));
  OUTRIDER_TRY(const RequestField created, root.at("created_ms"));
  OUTRIDER_TRY(file.created_ms, created.integer(0, kMost));
  return file;
}

ApiError store_error(const Error& error) {
  log_event("batch_folder_failed", error.message);
  return {.status = 507,
          .type = "server_error",
          .message = "the file could not be stored; the log of the server says why",
          .code = "storage_failed"};
}

}  // namespace

std::string file_body(const StoredFile& file) {
  std::string text;
  JsonWriter json(text);
  json.begin_object().member("id", file.id).member("object", "file").member("bytes", file.bytes);
  json.member("created_at", file.created_ms / 1000).member("filename", file.name);
  json.member("purpose", file.purpose).member("status", "processed").end_object();
  return text;
}

Result<FileStore> FileStore::open(std::filesystem::path folder, const Limits& limits,
                                  const std::vector<std::string>& kept) {
  OUTRIDER_RETURN_IF_ERROR(make_directories(folder));
  FileStore store(std::move(folder), limits);
  OUTRIDER_RETURN_IF_ERROR(store.read(kept));
  return store;
}

Status FileStore::read(const std::vector<std::string>& kept) {
  std::vector<std::filesystem::path> contents;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder_, error)) {
    if (entry.path().extension() == kContent) contents.push_back(entry.path());
    if (entry.path().extension() != kDescription) continue;
    std::ifstream text(entry.path(), std::ios::binary);
    auto file = read_description(std::string(std::istreambuf_iterator<char>(text), {}));
    if (!file.ok() || file->id != entry.path().stem().string())
      return input_error(
          fmt::format("expected the description of a file in {}; remove it", entry.path().string()));
    bytes_ += file->bytes;
    files_.emplace(file->id, std::move(file).value());
  }
  if (error) return io_error(fmt::format("cannot read {}: {}", folder_.string(), error.message()));
  for (const std::filesystem::path& path : contents) {
    const std::string id = path.stem().string();
    if (files_.contains(id) || std::ranges::find(kept, id) != kept.end()) continue;
    std::filesystem::remove(path, error);
  }
  return {};
}

Status FileStore::describe(const StoredFile& file) const {
  return write_durably(folder_ / (file.id + std::string(kDescription)), description_of(file));
}

std::optional<ApiError> FileStore::refusal(int64_t bytes) const {
  if (bytes > limits_.file_bytes) {
    return ApiError{
        .status = 413,
        .message = fmt::format("expected a file of at most {} bytes, found {}", limits_.file_bytes, bytes),
        .param = "file",
        .code = "file_too_large"};
  }
  if (files_.size() >= limits_.files) {
    return ApiError{.status = 429,
                    .type = "rate_limit_error",
                    .message = fmt::format("the server keeps {} files; delete some", limits_.files),
                    .code = "too_many_files"};
  }
  if (bytes_ + bytes > limits_.all_bytes) {
    return ApiError{
        .status = 429,
        .type = "rate_limit_error",
        .message = fmt::format("the server keeps {} bytes of files, and {} are taken; delete some",
                               limits_.all_bytes, bytes_),
        .code = "folder_full"};
  }
  return std::nullopt;
}

ApiResult<std::string> FileStore::add(StoredFile file, std::string_view content) {
  file.bytes = static_cast<int64_t>(content.size());
  if (auto refused = refusal(file.bytes)) return *std::move(refused);
  file.id = "file-" + random_id();
  Status stored = write_durably(path_of(file.id), content);
  if (stored.ok()) stored = describe(file);
  if (!stored.ok()) {
    std::error_code ignored;
    std::filesystem::remove(path_of(file.id), ignored);
    return store_error(stored.error());
  }
  bytes_ += file.bytes;
  std::string id = file.id;
  files_.emplace(id, std::move(file));
  return id;
}

Status FileStore::adopt(StoredFile file) {
  if (files_.contains(file.id)) return {};
  std::error_code error;
  file.bytes = static_cast<int64_t>(std::filesystem::file_size(path_of(file.id), error));
  if (error) return io_error(fmt::format("cannot find {}: {}", path_of(file.id).string(), error.message()));
  OUTRIDER_RETURN_IF_ERROR(describe(file));
  bytes_ += file.bytes;
  files_.emplace(file.id, std::move(file));
  return {};
}

const StoredFile* FileStore::find(uint64_t owner, const std::string& id) const {
  const auto found = files_.find(id);
  return found == files_.end() || found->second.owner != owner ? nullptr : &found->second;
}

bool FileStore::erase(uint64_t owner, const std::string& id) {
  const StoredFile* file = find(owner, id);
  if (file == nullptr) return false;
  std::error_code ignored;
  std::filesystem::remove(folder_ / (id + std::string(kDescription)), ignored);
  std::filesystem::remove(path_of(id), ignored);
  bytes_ -= file->bytes;
  files_.erase(id);
  return true;
}

std::vector<const StoredFile*> FileStore::of(uint64_t owner) const {
  std::vector<const StoredFile*> files;
  for (const auto& [id, file] : files_) {
    if (file.owner == owner) files.push_back(&file);
  }
  std::ranges::sort(files, {}, [](const StoredFile* file) { return std::pair(file->created_ms, file->id); });
  return files;
}

}  // namespace outrider
