// SPDX-License-Identifier: Apache-2.0
// Writers of zip archives and pickles, well-formed or not, for tests only.
#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace outrider {

inline std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

template <typename T>
std::string little_endian(T value) {
  std::string bytes(sizeof(value), '\0');
  std::memcpy(bytes.data(), &value, sizeof(value));
  return bytes;
}

struct TestZipEntry {
  std::string name;
  std::string data = {};
  uint16_t flags = 0;
  uint16_t method = 0;
  std::string extra = {};           // of the directory
  uint32_t stored = 0xFFFFFFFE;     // bytes in the directory; 0xFFFFFFFE: the bytes of `data`
  uint32_t offset = 0xFFFFFFFE;     // of the local header in the directory; 0xFFFFFFFE: its place
  std::string local_name = "\x01";  // "\x01": the name
};

// An archive without Zip64.
inline std::string zip_of(const std::vector<TestZipEntry>& entries, std::string_view comment = {}) {
  std::string file, directory;
  for (const TestZipEntry& entry : entries) {
    const auto place = static_cast<uint32_t>(file.size());
    const auto bytes = static_cast<uint32_t>(entry.data.size());
    const std::string_view local = entry.local_name == "\x01" ? entry.name : entry.local_name;
    const std::string head = little_endian(uint16_t{20}) + little_endian(entry.flags) +
                             little_endian(entry.method) + std::string(8, '\0');
    file += "PK\x03\x04" + head + little_endian(bytes) + little_endian(bytes) +
            little_endian(static_cast<uint16_t>(local.size())) + little_endian(uint16_t{3}) +
            std::string(local) + "pad" + entry.data;
    const uint32_t stored = entry.stored == 0xFFFFFFFE ? bytes : entry.stored;
    directory += "PK\x01\x02" + little_endian(uint16_t{20}) + head + little_endian(stored) +
                 little_endian(stored == 0xFFFFFFFF ? stored : bytes) +
                 little_endian(static_cast<uint16_t>(entry.name.size())) +
                 little_endian(static_cast<uint16_t>(entry.extra.size())) + std::string(10, '\0') +
                 little_endian(entry.offset == 0xFFFFFFFE ? place : entry.offset) + entry.name + entry.extra;
  }
  const auto count = static_cast<uint16_t>(entries.size());
  const auto start = static_cast<uint32_t>(file.size());
  return file + directory + std::string("PK\x05\x06\0\0\0\0", 8) + little_endian(count) +
         little_endian(count) + little_endian(static_cast<uint32_t>(directory.size())) +
         little_endian(start) + little_endian(static_cast<uint16_t>(comment.size())) + std::string(comment);
}

inline const std::string kPickleStart = "\x80\x02";
inline const std::string kPickleStop = "u.";

inline std::string pickled_text(std::string_view text) {
  return "X" + little_endian(static_cast<uint32_t>(text.size())) + std::string(text);
}

inline std::string pickled_number(int32_t value) { return "J" + little_endian(value); }

inline std::string pickled_tuple(std::initializer_list<std::string> items) {
  std::string pickle = "(";
  for (const std::string& item : items) pickle += item;
  return pickle + "t";
}

// (storage, key, elements)
inline std::string pickled_storage(std::string_view type, std::string_view key, int32_t elements) {
  return pickled_tuple({pickled_text("storage"), "ctorch\n" + std::string(type) + "\n", pickled_text(key),
                        pickled_text("cpu"), pickled_number(elements)}) +
         "Q";
}

struct TestTensor {
  std::string storage = pickled_storage("FloatStorage", "0", 6);
  std::string offset = pickled_number(0);
  std::string shape = pickled_tuple({pickled_number(2), pickled_number(3)});
  std::string strides = pickled_tuple({pickled_number(3), pickled_number(1)});
};

inline std::string pickled_tensor(const TestTensor& tensor) {
  return "ctorch._utils\n_rebuild_tensor_v2\n" +
         pickled_tuple({tensor.storage, tensor.offset, tensor.shape, tensor.strides, "\x89", "}"}) + "R";
}

// A dictionary with the tensor "a".
inline std::string pickled_state(const TestTensor& tensor) {
  return kPickleStart + "}(" + pickled_text("a") + pickled_tensor(tensor) + kPickleStop;
}

// A file with that pickle and one storage of six numbers.
inline std::string torch_file_of(const std::string& pickle, const std::string& byte_order = "little") {
  return zip_of({{"m/data.pkl", pickle}, {"m/byteorder", byte_order}, {"m/data/0", std::string(24, '?')}});
}

struct TorchTensor {
  std::string name, storage;  // "FloatStorage", for example
  std::vector<int64_t> shape;
  std::string bytes;
};

// A file of these tensors.
inline std::string torch_file_of(const std::vector<TorchTensor>& tensors) {
  std::string pickle = kPickleStart + "}(";
  std::vector<TestZipEntry> entries;
  for (const TorchTensor& tensor : tensors) {
    int64_t stride = 1;
    for (const int64_t size : tensor.shape) stride *= size;
    const auto count = static_cast<int32_t>(stride);
    std::string sizes, strides;
    for (const int64_t size : tensor.shape) {
      stride /= size;
      sizes += pickled_number(static_cast<int32_t>(size));
      strides += pickled_number(static_cast<int32_t>(stride));
    }
    const std::string key = std::to_string(entries.size());
    pickle +=
        pickled_text(tensor.name) + pickled_tensor({.storage = pickled_storage(tensor.storage, key, count),
                                                    .shape = "(" + sizes + "t",
                                                    .strides = "(" + strides + "t"});
    entries.push_back({"m/data/" + key, tensor.bytes});
  }
  entries.push_back({"m/data.pkl", pickle + kPickleStop});
  return zip_of(entries);
}

// The bytes of numbers, as a storage holds them.
template <typename Numbers>
std::string storage_bytes(const Numbers& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(numbers[0])};
}

// A file of F32 tensors of these shapes; `values(name, shape)` gives their numbers.
template <typename Values>
std::string torch_file_of(const std::map<std::string, std::vector<int64_t>>& shapes, const Values& values) {
  std::vector<TorchTensor> tensors;
  for (const auto& [name, shape] : shapes)
    tensors.push_back({name, "FloatStorage", shape, storage_bytes(values(name, shape))});
  return torch_file_of(tensors);
}

}  // namespace outrider
