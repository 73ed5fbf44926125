// SPDX-License-Identifier: Apache-2.0
#include "formats/hf/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "formats/test_outcome.h"

namespace outrider::safetensors_test {
namespace {

std::span<const std::byte> as_bytes(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

std::string length_prefix(uint64_t length) {
  std::string bytes(sizeof(length), '\0');
  std::memcpy(bytes.data(), &length, sizeof(length));
  return bytes;
}

std::string file_of(const std::string& header, size_t data_bytes) {
  return length_prefix(header.size()) + header + std::string(data_bytes, '\x3f');
}

Result<SafetensorsFile> parse(const std::string& bytes) {
  return parse_safetensors(as_bytes(bytes), "x.safetensors");
}

constexpr const char* kValidHeader =
    R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},)"
    R"("b":{"dtype":"I64","shape":[],"data_offsets":[16,24]},"c":{"dtype":"BF16","shape":[0,4],"data_offsets":[24,24]}})";

TEST(SafetensorsTest, ListsEveryTensor) {
  const std::string bytes = file_of(kValidHeader, 24);
  const auto file = parse(bytes);
  ASSERT_TRUE(file.ok()) << file.error().message;
  ASSERT_EQ(file->tensors.size(), 3u);
  const StoredTensor& a = file->tensors.at("a");
  EXPECT_EQ(a.dtype, DType::kF32);
  EXPECT_EQ(a.shape, (Shape{2, 2}));
  EXPECT_EQ(a.data.size(), 16u);
  EXPECT_EQ(a.data.data(), as_bytes(bytes).data() + bytes.size() - 24);
  EXPECT_EQ(file->tensors.at("b").dtype, std::nullopt);
  EXPECT_EQ(file->tensors.at("b").dtype_name, "I64");
  EXPECT_TRUE(file->tensors.at("c").data.empty());
  EXPECT_EQ(file->metadata.at("format"), "pt");
}

TEST(SafetensorsTest, HeaderMayBePaddedAndEscaped) {
  const auto file =
      parse(file_of("{\"\\u0061\":{\"shape\":[1],\"data_offsets\":[0,1],\"dtype\":\"U8\"}}   ", 1));
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_TRUE(file->tensors.contains("a"));
  EXPECT_TRUE(parse(file_of("{}", 0)).ok());
}

struct HostileFile {
  std::string name;
  std::string bytes;
  std::string part_of_message;
};

// A file with one tensor "a" of the given description and `data_bytes` bytes of data.
HostileFile one_tensor(const std::string& name, const std::string& description, size_t data_bytes,
                       const std::string& part_of_message) {
  return {name, file_of("{\"a\":" + description + "}", data_bytes), part_of_message};
}

std::string u8(uint64_t begin, uint64_t end) {
  return R"({"dtype":"U8","shape":[)" + std::to_string(end - begin) + R"(],"data_offsets":[)" +
         std::to_string(begin) + "," + std::to_string(end) + "]}";
}

std::vector<HostileFile> header_cases() {
  std::vector<HostileFile> cases = {
      {"empty file", "", "shorter than 8 bytes"},
      {"seven bytes", "1234567", "shorter than 8 bytes"},
      {"no header", length_prefix(0), "does not begin with"},
      {"header of nothing but a bracket", file_of("{", 0), "header is not valid"},
      {"list", file_of("[]", 0), "does not begin with"},
      {"space first", file_of(" {}", 0), "does not begin with"},
      {"two objects", file_of("{}{}", 0), "header"},
      {"something after", file_of("{}x", 0), "header"},
      {"cut", file_of(R"({"a":{"dtype":"U8")", 0), "header is not valid"},
      {"unfinished string", file_of(R"({"a)", 0), "header is not valid"},
      {"trailing comma", file_of("{\"a\":" + u8(0, 1) + ",}", 1), "header is not valid"},
      {"missing comma", file_of("{\"a\":" + u8(0, 1) + "\"b\":" + u8(0, 1) + "}", 1), "header is not valid"},
      {"invalid UTF-8", file_of("{\"\xff\":" + u8(0, 1) + "}", 1), "header is not valid"},
      {"NUL in a name", file_of(std::string("{\"a\0\":1}", 8), 0), "header is not valid"},
      {"lone surrogate", file_of("{\"\\ud800\":" + u8(0, 1) + "}", 1), "header is not valid"},
      {"duplicate name", file_of("{\"a\":" + u8(0, 1) + ",\"a\":" + u8(1, 2) + "}", 2), "appears twice"},
      {"duplicate by escape", file_of("{\"a\":" + u8(0, 1) + ",\"\\u0061\":" + u8(1, 2) + "}", 2),
       "appears twice"},
      {"line break in a name", file_of(R"({"a\nb":{}})", 0), "a\\x0ab"},
      {"metadata list", file_of(R"({"__metadata__":[]})", 0), "header is not valid"},
      {"metadata number", file_of(R"({"__metadata__":{"a":1}})", 0), "must be a string"},
      {"metadata nested", file_of(R"({"__metadata__":{"a":{"b":"c"}}})", 0), "must be a string"},
      {"metadata null", file_of(R"({"__metadata__":null})", 0), "header is not valid"},
      {"metadata twice", file_of(R"({"__metadata__":{},"__metadata__":{}})", 0), "appears twice"},
      {"metadata key twice", file_of(R"({"__metadata__":{"a":"","a":""}})", 0), "appears twice"},
      {"10000 levels", file_of("{\"a\":" + std::string(10000, '[') + std::string(10000, ']') + "}", 0),
       "header is not valid"},
      {"10000 levels of metadata", file_of("{\"__metadata__\":" + std::string(10000, '{'), 0),
       "header is not valid"},
      {"10000 levels of shape",
       file_of("{\"a\":{\"shape\":" + std::string(10000, '[') + std::string(10000, ']') + "}}", 0),
       "dimension"},
  };
  for (const uint64_t length : {uint64_t{1}, uint64_t{7}, uint64_t{99'999'999}, uint64_t{100'000'000}}) {
    cases.push_back({"header of " + std::to_string(length), length_prefix(length), "the header claims"});
  }
  for (const uint64_t length : {uint64_t{100'000'001}, uint64_t{1} << 32, uint64_t{1} << 63, ~uint64_t{0}}) {
    cases.push_back(
        {"header of " + std::to_string(length), length_prefix(length) + "{}", "beyond the limit"});
  }
  return cases;
}

std::string with(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return "{\"dtype\":" + dtype + ",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}";
}

std::vector<HostileFile> tensor_cases() {
  const std::string f32 = "\"F32\"";
  return {
      one_tensor("number", "1", 0, "header is not valid"),
      one_tensor("null", "null", 0, "header is not valid"),
      one_tensor("nothing", "{}", 0, "must have dtype, shape and data_offsets"),
      one_tensor("no dtype", R"({"shape":[1],"data_offsets":[0,1]})", 1, "must have dtype"),
      one_tensor("no shape", R"({"dtype":"U8","data_offsets":[0,1]})", 1, "must have dtype"),
      one_tensor("no offsets", R"({"dtype":"U8","shape":[1]})", 1, "must have dtype"),
      one_tensor("unknown key", R"({"dtype":"U8","shape":[1],"data_offsets":[0,1],"x":1})", 1,
                 "unknown key 'x'"),
      one_tensor("dtype twice", R"({"dtype":"U8","dtype":"U8","shape":[1],"data_offsets":[0,1]})", 1,
                 "twice"),
      one_tensor("shape twice", R"({"dtype":"U8","shape":[1],"shape":[1],"data_offsets":[0,1]})", 1, "twice"),
      one_tensor("unknown dtype", with("\"F7\"", "[1]", "[0,1]"), 1, "unknown dtype 'F7'"),
      one_tensor("lower-case dtype", with("\"f32\"", "[1]", "[0,4]"), 4, "unknown dtype 'f32'"),
      one_tensor("dtype number", with("32", "[1]", "[0,4]"), 4, "header is not valid"),
      one_tensor("shape number", with(f32, "1", "[0,4]"), 4, "header is not valid"),
      one_tensor("negative dimension", with(f32, "[-1]", "[0,4]"), 4, "no whole number"),
      one_tensor("fractional dimension", with(f32, "[1.0]", "[0,4]"), 4, "no whole number"),
      one_tensor("dimension as text", with(f32, "[\"1\"]", "[0,4]"), 4, "no whole number"),
      one_tensor("dimension 2^64", with(f32, "[18446744073709551616]", "[0,4]"), 4, "no whole number"),
      one_tensor("dimension 2^63", with(f32, "[9223372036854775808]", "[0,4]"), 4, "no whole number"),
      one_tensor("product wraps to 0", with(f32, "[4611686018427387904,4]", "[0,0]"), 0, "does not match"),
      one_tensor("product wraps to 16", with("\"U8\"", "[4294967296,4294967297]", "[0,16]"), 16,
                 "does not match"),
      one_tensor("17 dimensions", with("\"U8\"", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "[0,1]"), 1,
                 "16 dimensions"),
  };
}

std::vector<HostileFile> extent_cases() {
  const std::string f32 = "\"F32\"";
  return {
      one_tensor("too small an extent", with(f32, "[2]", "[0,4]"), 4, "does not match"),
      one_tensor("too large an extent", with(f32, "[1]", "[0,8]"), 8, "does not match"),
      one_tensor("half a byte", with("\"F4\"", "[1]", "[0,0]"), 0, "does not match"),
      one_tensor("begin > end", with(f32, "[1]", "[4,0]"), 4, "lies from 4 to 0"),
      one_tensor("end after the file", with(f32, "[2]", "[0,8]"), 4, "lies from 0 to 8"),
      one_tensor("end 2^64-1", with(f32, "[1]", "[0,18446744073709551615]"), 4, "lies from 0"),
      one_tensor("both 2^64-1", with("\"U8\"", "[0]", "[18446744073709551615,18446744073709551615]"), 4,
                 "lies from"),
      one_tensor("one offset", with(f32, "[1]", "[4]"), 4, "two data_offsets"),
      one_tensor("three offsets", with(f32, "[1]", "[0,4,4]"), 4, "two data_offsets"),
      one_tensor("negative offset", with(f32, "[1]", "[-4,0]"), 4, "two data_offsets"),
      one_tensor("offsets object", with(f32, "[1]", "{}"), 4, "header is not valid"),
      one_tensor("hole at the start", u8(1, 2), 2, "hole"),
      one_tensor("bytes after", u8(0, 1), 2, "bytes after the last tensor"),
      {"data without tensors", file_of("{}", 4), "bytes after the last tensor"},
      {"hole between", file_of("{\"a\":" + u8(0, 1) + ",\"b\":" + u8(2, 3) + "}", 3), "hole"},
      {"overlap", file_of("{\"a\":" + u8(0, 2) + ",\"b\":" + u8(1, 3) + "}", 3), "overlap"},
      {"the same twice", file_of("{\"a\":" + u8(0, 2) + ",\"b\":" + u8(0, 2) + "}", 2), "overlap"},
      {"empty tensor inside another", file_of("{\"a\":" + u8(0, 2) + ",\"b\":" + u8(1, 1) + "}", 2),
       "overlap"},
  };
}

TEST(SafetensorsHostileTest, NamedKinds) {
  size_t count = 0;
  for (const auto& cases : {header_cases(), tensor_cases(), extent_cases()}) {
    for (const HostileFile& hostile : cases) {
      SCOPED_TRACE(hostile.name);
      expect_refused(parse(hostile.bytes), hostile.part_of_message);
      ++count;
    }
  }
  EXPECT_GE(count, 50u);
}

TEST(SafetensorsHostileTest, CutAtEveryByte) {
  // The data are enough to serve as padding for the JSON parser, or too short for that.
  for (const size_t extra : {size_t{0}, size_t{200}}) {
    std::string header(kValidHeader);
    header.insert(header.size() - 1, ",\"d\":" + u8(24, 24 + extra));
    const std::string bytes = file_of(header, 24 + extra);
    ASSERT_TRUE(parse(bytes).ok());
    for (size_t size = 0; size < bytes.size(); ++size) {
      SCOPED_TRACE(size);
      const std::vector<char> exact(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(size));
      expect_refused(parse_safetensors(std::as_bytes(std::span(exact)), "x.safetensors"), "");
    }
  }
}

TEST(SafetensorsHostileTest, EveryByteReplaced) {
  const std::string valid = file_of(kValidHeader, 24);
  for (size_t i = 0; i < valid.size(); ++i) {
    for (const char c : {'\0', '"', '{', '}', '[', ',', ':', '9', '-', '\\', '\xff'}) {
      std::string bytes = valid;
      bytes[i] = c;
      expect_refused_or_valid(parse(bytes));
    }
  }
}

TEST(SafetensorsHostileTest, TooManyEntries) {
  std::string metadata = "{\"__metadata__\":{\"x\":\"\"";
  for (int i = 0; i < 65536; ++i) metadata += ",\"" + std::to_string(i) + "\":\"\"";
  expect_refused(parse(file_of(metadata + "}}", 0)), "more than 65536 entries");
  std::string tensors = "{\"x\":" + u8(0, 0);
  for (int i = 0; i < 65536; ++i) tensors += ",\"" + std::to_string(i) + "\":" + u8(0, 0);
  expect_refused(parse(file_of(tensors + "}", 0)), "more than 65536 tensors");
}

}  // namespace
}  // namespace outrider::safetensors_test
