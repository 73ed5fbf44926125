// SPDX-License-Identifier: Apache-2.0
#include "formats/torch/stored_zip.h"

#include <gtest/gtest.h>

#include "formats/test_outcome.h"
#include "formats/torch/test_torch.h"

namespace outrider {
namespace {

Result<ZipEntries> read_zip(const std::string& bytes) { return read_stored_zip(bytes_of(bytes), "x.bin"); }

std::string text_in(const ZipEntries& entries, std::string_view name) {
  const auto data = entries.find(name)->second;
  return {reinterpret_cast<const char*>(data.data()), data.size()};
}

TEST(StoredZip, ListsEntriesInPlace) {
  const std::string bytes = zip_of({{"a/b", "first"}, {"c", ""}, {"d", "PK\x05\x06"}}, "a comment");
  const auto entries = read_zip(bytes);
  ASSERT_TRUE(entries.ok()) << entries.error().message;
  EXPECT_EQ(entries->size(), 3u);
  EXPECT_EQ(text_in(*entries, "a/b"), "first");
  EXPECT_EQ(text_in(*entries, "c"), "");
  const auto* begin = reinterpret_cast<const std::byte*>(bytes.data());
  EXPECT_TRUE(entries->find("a/b")->second.data() > begin);
  EXPECT_TRUE(entries->find("a/b")->second.data() < begin + bytes.size());
  EXPECT_TRUE(read_zip(zip_of({}))->empty());
}

TEST(StoredZip, ReadsNumbersOf64Bits) {
  const std::string other_field = little_endian(uint16_t{7}) + little_endian(uint16_t{1}) + "x";
  const std::string sizes = little_endian(uint16_t{1}) + little_endian(uint16_t{16}) +
                            little_endian(uint64_t{5}) + little_endian(uint64_t{5});
  const std::string bytes =
      zip_of({{.name = "a", .data = "first", .extra = other_field + sizes, .stored = 0xFFFFFFFF}});
  const auto entries = read_zip(bytes);  // they lie in `bytes`
  ASSERT_TRUE(entries.ok()) << entries.error().message;
  EXPECT_EQ(text_in(*entries, "a"), "first");
  expect_refused(read_zip(zip_of({{.name = "a", .extra = sizes.substr(0, 12), .stored = 0xFFFFFFFF}})),
                 "damaged");
  expect_refused(read_zip(zip_of({{.name = "a", .stored = 0xFFFFFFFF}})), "damaged");
}

TEST(StoredZip, RefusesWhatIsNotStored) {
  expect_refused(read_zip(zip_of({{.name = "a", .data = "x", .method = 8}})), "entry 'a' is compressed");
  expect_refused(read_zip(zip_of({{.name = "a", .data = "x", .flags = 1}})), "entry 'a' is encrypted");
  expect_refused(read_zip(zip_of({{.name = "a", .data = "x", .stored = 2}})), "entry 'a' is compressed");
  expect_refused(read_zip(zip_of({{"a", "x"}, {"a", "y"}})), "entry 'a' appears twice");
}

TEST(StoredZip, RefusesOverlaps) {
  expect_refused(read_zip(zip_of({{"a", "x"}, {.name = "b", .data = "y", .offset = 0, .local_name = "b"}})),
                 "damaged");
  expect_refused(read_zip(zip_of({{"a", "x"}, {"b", "y", 0, 0, {}, 0xFFFFFFFE, 0xFFFFFFFE, "c"}})),
                 "damaged");
  // An entry within the data of another: each byte of the file would count several times.
  const std::string inner = zip_of({{"b", "y"}});
  const std::string local = inner.substr(0, inner.find("PK\x01\x02"));
  constexpr uint32_t kLocalHeader = 30 + 1 + 3;
  expect_refused(read_zip(zip_of({{"a", local}, {.name = "b", .data = "y", .offset = kLocalHeader}})),
                 "two entries of the zip archive overlap");
}

TEST(StoredZip, RefusesEveryCutAndSurvivesEveryChange) {
  const std::string bytes = zip_of({{"a", "first"}, {"b", "second"}});
  for (size_t size = 0; size < bytes.size(); ++size)
    expect_refused(read_zip(bytes.substr(0, size)), "damaged");
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (const int change : {0x01, 0x80, 0xFF}) {
      std::string changed = bytes;
      changed[i] = static_cast<char>(changed[i] ^ change);
      expect_refused_or_valid(read_zip(changed));
    }
  }
}

}  // namespace
}  // namespace outrider
