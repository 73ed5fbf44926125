// SPDX-License-Identifier: Apache-2.0
// The most multiplications and additions this machine can do, by instruction set: `rounds` of independent
// fused multiply-adds in registers. Each returns its operations (a multiply-add is two).
#pragma once

#include <cstdint>

namespace outrider {

int64_t multiply_add_avx2(int64_t rounds);
int64_t multiply_add_avx512(int64_t rounds);
int64_t multiply_add_avx512_bf16(int64_t rounds);  // pairs of bf16
int64_t multiply_add_amx(int64_t rounds);          // bf16 tiles

}  // namespace outrider
