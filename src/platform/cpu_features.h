// SPDX-License-Identifier: Apache-2.0
// The instruction sets that this machine can run, by processor, operating system and permission; found once.
#pragma once

#include <cstdint>
#include <string>

namespace outrider {

// Raw answers of processor and kernel; answers for another architecture are zero. Register names follow the
// CPUID leaves of Intel's manual, volume 2A.
struct CpuFacts {
  uint32_t leaf1_ecx = 0;
  uint32_t leaf7_ebx = 0;
  uint32_t leaf7_ecx = 0;
  uint32_t leaf7_edx = 0;
  uint32_t leaf7_1_eax = 0;
  bool is_amd = false;         // the vendor of leaf 0 is AuthenticAMD
  uint64_t xcr0 = 0;           // register states the operating system saves
  bool amx_permitted = false;  // the kernel granted this process the tile data state
  uint64_t hwcap = 0;          // Linux on ARM reports instruction sets as bits of two words
  uint64_t hwcap2 = 0;
};

// An empty refusal means usable; any other is the reason, such as "the processor lacks avx512bw".
struct CpuFeatures {
  std::string avx2_refusal;         // AVX2, FMA, F16C
  std::string avx512_refusal;       // AVX-512 F, BW, VL, DQ, and all of avx2
  std::string avx512_bf16_refusal;  // AVX512-BF16, -VNNI, and all of avx512
  std::string amx_refusal;          // AMX-TILE, AMX-BF16, AMX-INT8, AVX512-VBMI2, and all of avx512_bf16
  std::string neon_refusal;         // NEON with dot products of bytes (Apple M1, Graviton 2)
  std::string i8mm_refusal;         // products of matrices of bytes, and all of neon (Apple M2, Graviton 3)
  std::string bf16_refusal;         // products of matrices of bf16, and all of i8mm (Apple M2, Graviton 3)
  // Byte products that the tables of that level use where available.
  bool avx_vnni = false;
  bool avx512_vnni = false;
  // Whether pairs of bf16 are multiplied as fast as single f32 numbers, as on AMD's processors. Intel's take
  // three times as long (docs/reference/performance.md).
  bool fast_bf16_pairs = false;
};

CpuFeatures judge_cpu(const CpuFacts& facts);

// The features of this machine. The first call asks the kernel for the AMX tile state on behalf of the whole
// process.
const CpuFeatures& cpu_features();

}  // namespace outrider
