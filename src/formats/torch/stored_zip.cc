// SPDX-License-Identifier: Apache-2.0
// The layout follows APPNOTE.TXT of PKWARE; numbers are little-endian.
#include "formats/torch/stored_zip.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "base/quote.h"

namespace outrider {
namespace {

constexpr uint64_t kMaxZipEntries = 65536;
constexpr uint32_t kLocalSignature = 0x04034b50;
constexpr uint32_t kCentralSignature = 0x02014b50;
constexpr uint32_t kEndSignature = 0x06054b50;
constexpr uint32_t kEnd64Signature = 0x06064b50;
constexpr uint32_t kLocator64Signature = 0x07064b50;
constexpr uint64_t kLocalBytes = 30;    // of a local header before its name
constexpr uint64_t kCentralBytes = 46;  // of an entry of the directory before its name
constexpr uint64_t kEndBytes = 22;
constexpr uint64_t kEnd64Bytes = 56;
constexpr uint64_t kLocator64Bytes = 20;
constexpr uint64_t kMaxComment = 0xFFFF;
constexpr uint32_t kIn64 = 0xFFFFFFFF;  // in place of a number that the Zip64 field holds
constexpr uint16_t kZip64Field = 1;

// The directory lists what is where.
struct ZipDirectory {
  uint64_t entries = 0;
  uint64_t bytes = 0;
  uint64_t offset = 0;
};

struct ZipRecord {
  std::string_view name;
  uint64_t stored = 0;  // bytes in the file
  uint64_t bytes = 0;   // bytes of the entry
  uint64_t offset = 0;  // of the local header
};

class ZipReader {
 public:
  ZipReader(std::span<const std::byte> bytes, std::string_view name) : bytes_(bytes), name_(name) {}

  Result<ZipEntries> read() {
    OUTRIDER_TRY(const ZipDirectory directory, find_directory());
    OUTRIDER_RETURN_IF_ERROR(read_directory(directory));
    OUTRIDER_RETURN_IF_ERROR(check_overlaps(directory.offset));
    return std::move(entries_);
  }

 private:
  Error fail(const std::string& what) const { return input_error(name_ + ": " + what); }
  Error cut() const { return fail("the zip archive is cut or damaged; download it again"); }

  bool has(uint64_t offset, uint64_t count) const {
    return offset <= bytes_.size() && count <= bytes_.size() - offset;
  }
  // Precondition: has(offset, sizeof(T)).
  template <typename T>
  T number(uint64_t offset) const {
    T value;
    std::memcpy(&value, bytes_.data() + offset, sizeof(value));
    return value;
  }
  std::string_view text(uint64_t offset, uint64_t count) const {
    return {reinterpret_cast<const char*>(bytes_.data()) + offset, count};
  }

  std::optional<uint64_t> find_end() const;
  Result<ZipDirectory> find_directory() const;
  Result<ZipDirectory> find_directory64(uint64_t end) const;
  Status read_directory(const ZipDirectory& directory);
  Status read_zip64(std::string_view extra, ZipRecord& record) const;
  Status add_entry(const ZipRecord& record);
  Status check_overlaps(uint64_t directory_offset);

  std::span<const std::byte> bytes_;
  std::string name_;
  ZipEntries entries_;
  std::vector<std::pair<uint64_t, uint64_t>> extents_;  // from the local header to the end of the data
};

// The record that ends the archive; only its comment may follow.
std::optional<uint64_t> ZipReader::find_end() const {
  if (bytes_.size() < kEndBytes) return std::nullopt;
  const uint64_t last = bytes_.size() - kEndBytes;
  for (uint64_t comment = 0; comment <= std::min(last, kMaxComment); ++comment) {
    const uint64_t at = last - comment;
    if (number<uint32_t>(at) == kEndSignature && number<uint16_t>(at + 20) == comment) return at;
  }
  return std::nullopt;
}

Result<ZipDirectory> ZipReader::find_directory() const {
  const auto end = find_end();
  if (!end) return cut();
  if (*end >= kLocator64Bytes && number<uint32_t>(*end - kLocator64Bytes) == kLocator64Signature)
    return find_directory64(*end);
  return ZipDirectory{.entries = number<uint16_t>(*end + 10),
                      .bytes = number<uint32_t>(*end + 12),
                      .offset = number<uint32_t>(*end + 16)};
}

Result<ZipDirectory> ZipReader::find_directory64(uint64_t end) const {
  const auto at = number<uint64_t>(end - kLocator64Bytes + 8);
  if (!has(at, kEnd64Bytes) || number<uint32_t>(at) != kEnd64Signature) return cut();
  return ZipDirectory{.entries = number<uint64_t>(at + 32),
                      .bytes = number<uint64_t>(at + 40),
                      .offset = number<uint64_t>(at + 48)};
}

Status ZipReader::read_directory(const ZipDirectory& directory) {
  if (!has(directory.offset, directory.bytes)) return cut();
  if (directory.entries > kMaxZipEntries) return fail("more than 65536 entries in the zip archive");
  const uint64_t end = directory.offset + directory.bytes;
  uint64_t at = directory.offset;
  for (uint64_t i = 0; i < directory.entries; ++i) {
    if (end - at < kCentralBytes || number<uint32_t>(at) != kCentralSignature) return cut();
    const uint64_t name_bytes = number<uint16_t>(at + 28);
    const uint64_t extra_bytes = number<uint16_t>(at + 30);
    const uint64_t bytes = kCentralBytes + name_bytes + extra_bytes + number<uint16_t>(at + 32);
    if (end - at < bytes) return cut();
    ZipRecord record{.name = text(at + kCentralBytes, name_bytes),
                     .stored = number<uint32_t>(at + 20),
                     .bytes = number<uint32_t>(at + 24),
                     .offset = number<uint32_t>(at + 42)};
    OUTRIDER_RETURN_IF_ERROR(read_zip64(text(at + kCentralBytes + name_bytes, extra_bytes), record));
    if ((number<uint16_t>(at + 8) & 1) != 0) return fail("entry " + quote(record.name) + " is encrypted");
    if (number<uint16_t>(at + 10) != 0 || record.stored != record.bytes)
      return fail("entry " + quote(record.name) + " is compressed; torch.save() stores entries as they are");
    OUTRIDER_RETURN_IF_ERROR(add_entry(record));
    at += bytes;
  }
  return at == end ? Status() : cut();
}

// The field holds, in this order, only the numbers that do not fit 32 bits.
Status ZipReader::read_zip64(std::string_view extra, ZipRecord& record) const {
  while (extra.size() >= 4) {
    uint16_t head[2];  // kind of the field, and its bytes
    std::memcpy(head, extra.data(), sizeof(head));
    std::string_view field = extra.substr(sizeof(head), head[1]);
    if (field.size() < head[1]) return cut();
    extra.remove_prefix(sizeof(head) + head[1]);
    if (head[0] != kZip64Field) continue;
    for (uint64_t* value : {&record.bytes, &record.stored, &record.offset}) {
      if (*value != kIn64) continue;
      if (field.size() < sizeof(*value)) return cut();
      std::memcpy(value, field.data(), sizeof(*value));
      field.remove_prefix(sizeof(*value));
    }
  }
  return {};
}

Status ZipReader::add_entry(const ZipRecord& record) {
  if (!has(record.offset, kLocalBytes) || number<uint32_t>(record.offset) != kLocalSignature) return cut();
  const uint64_t name_bytes = number<uint16_t>(record.offset + 26);
  const uint64_t data = record.offset + kLocalBytes + name_bytes + number<uint16_t>(record.offset + 28);
  if (!has(data, record.bytes) || text(record.offset + kLocalBytes, name_bytes) != record.name) return cut();
  extents_.emplace_back(record.offset, data + record.bytes);
  if (!entries_.emplace(record.name, bytes_.subspan(data, record.bytes)).second)
    return fail("entry " + quote(record.name) + " appears twice");
  return {};
}

Status ZipReader::check_overlaps(uint64_t directory_offset) {
  std::ranges::sort(extents_);
  uint64_t end = 0;
  for (const auto& [begin, next_end] : extents_) {
    if (begin < end) return fail("two entries of the zip archive overlap");
    end = next_end;
  }
  return end <= directory_offset ? Status() : fail("an entry overlaps the directory of the zip archive");
}

}  // namespace

Result<ZipEntries> read_stored_zip(std::span<const std::byte> bytes, std::string_view name) {
  return ZipReader(bytes, name).read();
}

}  // namespace outrider
