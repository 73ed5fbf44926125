// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace outrider {

// Element types of stored tensors. The block types come from GGUF: rows are split into blocks of
// block_elements(dtype) consecutive elements, each stored in block_bytes(dtype) bytes. Some are no types of
// GGUF and exist in memory only. A row of kI8 is one f32 scale and its 8-bit numbers, x[i] = scale * q[i]. A
// block of kF8 is one f32 scale and 128 numbers in E4M3. A block of kNVFP4F is an f32 factor and a block of
// kNVFP4. The type kE4M3 has numbers without a scale, in caches.
enum class DType : uint8_t {
  kF32,
  kF16,
  kBF16,
  kQ8_0,
  kQ4_0,
  kQ4_1,
  kQ5_0,
  kQ5_1,
  kQ2_K,
  kQ3_K,
  kQ4_K,
  kQ5_K,
  kQ6_K,
  kIQ1_S,
  kIQ1_M,
  kIQ2_XXS,
  kIQ2_XS,
  kIQ2_S,
  kIQ3_XXS,
  kIQ3_S,
  kIQ4_NL,
  kIQ4_XS,
  kTQ1_0,
  kTQ2_0,
  kMXFP4,
  kNVFP4,
  kNVFP4F,
  kF8,
  kI8,
  kE4M3
};

constexpr int kWeightTypeCount = 29;  // the types before kE4M3
constexpr int kDTypeCount = 30;

// Lower-case name as used on the command line and in messages: "f32", "q4_k".
std::string_view dtype_name(DType dtype);
std::optional<DType> parse_dtype(std::string_view name);

int64_t block_elements(DType dtype);
int64_t block_bytes(DType dtype);
// Size in bytes of the header before the blocks of each row.
int64_t row_header_bytes(DType dtype);

// Whether numbers are integer codes times scales.
bool has_codes(DType dtype);

// Bytes of one row of `elements` elements; elements must be a multiple of block_elements(dtype).
int64_t row_bytes(DType dtype, int64_t elements);

// Bytes of one head vector in the KV cache: F32, F16, BF16, E4M3, or Q8_0 with one scale per 32 numbers.
// Heads are padded with zeros to a multiple of 32 numbers, so that loops need no masks.
int64_t cached_head_bytes(DType dtype, int64_t head_dim);

// Round to nearest even; NaN stays NaN.
uint16_t f32_to_bf16(float value);
float bf16_to_f32(uint16_t bits);
uint16_t f32_to_f16(float value);
float f16_to_f32(uint16_t bits);

// OCP's format E4M3 has no infinities. Its two codes of NaN count as +-480, as kernels of F8 have them: a
// matrix with NaN has it in the scale of a block.
uint8_t f32_to_e4m3(float value);  // at most +-448; a code of NaN for what is not finite
float e4m3_to_f32(uint8_t bits);
constexpr bool is_e4m3_nan(uint8_t bits) { return (bits & 0x7F) == 0x7F; }

}  // namespace outrider
