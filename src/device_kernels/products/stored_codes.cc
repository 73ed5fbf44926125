// SPDX-License-Identifier: Apache-2.0
#include "device_kernels/products/stored_codes.h"

#include <algorithm>
#include <cstring>

#include "kernels/weight_codes.h"

namespace outrider {
namespace {

// Appends numbers [begin, begin + kCodesPerStretch) of a row, as far as it goes.
void append_stretch(const CodeType& type, const WeightCodes& stretch, int64_t count, StoredCodes& out) {
  const int8_t* numbers = nibble_numbers(type.values);
  const bool looks_up = type.bits == 4 && !type.has_min;
  for (int64_t i = 0; i < count; ++i)
    out.codes.push_back(looks_up ? numbers[stretch.codes[i]] : stretch.codes[i]);
  const int64_t groups = count / type.group;
  out.scales.insert(out.scales.end(), stretch.scales, stretch.scales + groups);
  if (type.has_min) out.mins.insert(out.mins.end(), stretch.mins, stretch.mins + groups);
}

// Rows with one scale for all their numbers.
StoredCodes whole_rows(const PackedMatrix& table) {
  StoredCodes out{.group = static_cast<int>(table.k)};
  for (int64_t row = 0; row < table.n; ++row) {
    const std::byte* bytes = table.data.data() + row * table.panel_bytes;
    std::memcpy(&out.scales.emplace_back(), bytes, sizeof(float));
    const auto* codes = reinterpret_cast<const int8_t*>(bytes + sizeof(float));
    out.codes.insert(out.codes.end(), codes, codes + table.k);
  }
  return out;
}

}  // namespace

StoredCodes stored_codes(const PackedMatrix& table) {
  if (table.dtype == DType::kI8) return whole_rows(table);
  const CodeType type = code_type(table.dtype);
  StoredCodes out{.group = type.group};
  out.codes.reserve(static_cast<size_t>(table.n * table.k));
  WeightCodes stretch;
  for (int64_t row = 0; row < table.n; ++row) {
    const std::byte* bytes = table.data.data() + row * table.panel_bytes;
    for (int64_t begin = 0; begin < table.k; begin += kCodesPerStretch) {
      read_codes(table.dtype, bytes, begin, table.k, stretch);
      append_stretch(type, stretch, std::min<int64_t>(kCodesPerStretch, table.k - begin), out);
    }
  }
  return out;
}

int64_t stored_table_bytes(DType dtype, int64_t n, int64_t k) {
  if (dtype == DType::kI8) return n * (k + int64_t{sizeof(float)});
  if (block_elements(dtype) == 1) return n * k * static_cast<int64_t>(block_bytes(dtype));
  const CodeType type = code_type(dtype);
  return n * (k + k / type.group * int64_t{sizeof(float)} * (type.has_min ? 2 : 1));
}

}  // namespace outrider
