// SPDX-License-Identifier: Apache-2.0
#include "platform/cpu_features.h"

#include <initializer_list>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace outrider {
namespace {

struct Requirement {
  const char* name;
  uint64_t reg;
  int bit;
};

constexpr int kOsXsaveBit = 27;
constexpr uint64_t kYmmState = 0x6;       // SSE, AVX
constexpr uint64_t kZmmState = 0xE0;      // opmask, upper halves of ZMM0-15, ZMM16-31
constexpr uint64_t kTileState = 0x60000;  // TILECFG, TILEDATA

std::string missing_of(std::initializer_list<Requirement> requirements) {
  std::string missing;
  for (const Requirement& requirement : requirements) {
    if ((requirement.reg >> requirement.bit & 1) != 0) continue;
    missing += missing.empty() ? "the processor lacks " : ", ";
    missing += requirement.name;
  }
  return missing;
}

std::string unsaved_state(uint64_t xcr0, uint64_t state, const char* name) {
  if ((xcr0 & state) == state) return "";
  return std::string("the operating system does not save the ") + name + " registers";
}

std::string first_of(std::initializer_list<std::string> reasons) {
  for (const std::string& reason : reasons) {
    if (!reason.empty()) return reason;
  }
  return "";
}

#if defined(__x86_64__)
// Linux grants the 8 KiB tile state on request only, for all threads of the process at once.
bool request_amx() {
  constexpr int kRequestPermission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr int kTileData = 18;               // XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

uint64_t read_xcr0() {
  uint32_t low = 0;
  uint32_t high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return static_cast<uint64_t>(high) << 32 | low;
}

CpuFacts read_facts() {
  CpuFacts facts;
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid(0, &eax, &ebx, &ecx, &edx) != 0) {
    facts.is_amd = ebx == signature_AMD_ebx && edx == signature_AMD_edx && ecx == signature_AMD_ecx;
  }
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0) facts.leaf1_ecx = ecx;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0) {
    facts.leaf7_ebx = ebx;
    facts.leaf7_ecx = ecx;
    facts.leaf7_edx = edx;
    const uint32_t last_subleaf = eax;
    if (last_subleaf >= 1 && __get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0) facts.leaf7_1_eax = eax;
  }
  if ((facts.leaf1_ecx >> kOsXsaveBit & 1) != 0) facts.xcr0 = read_xcr0();
  if ((facts.xcr0 & kTileState) == kTileState) facts.amx_permitted = request_amx();
  return facts;
}
#elif defined(__aarch64__)
CpuFacts read_facts() { return {.hwcap = getauxval(AT_HWCAP), .hwcap2 = getauxval(AT_HWCAP2)}; }
#endif

}  // namespace

CpuFeatures judge_cpu(const CpuFacts& facts) {
  CpuFeatures features;
  features.avx2_refusal = first_of({missing_of({{"avx", facts.leaf1_ecx, 28},
                                                {"avx2", facts.leaf7_ebx, 5},
                                                {"fma", facts.leaf1_ecx, 12},
                                                {"f16c", facts.leaf1_ecx, 29}}),
                                    unsaved_state(facts.xcr0, kYmmState, "AVX")});
  features.avx512_refusal = first_of({features.avx2_refusal,
                                      missing_of({{"avx512f", facts.leaf7_ebx, 16},
                                                  {"avx512bw", facts.leaf7_ebx, 30},
                                                  {"avx512vl", facts.leaf7_ebx, 31},
                                                  {"avx512dq", facts.leaf7_ebx, 17}}),
                                      unsaved_state(facts.xcr0, kZmmState, "AVX-512")});
  features.avx512_bf16_refusal =
      first_of({features.avx512_refusal,
                missing_of({{"avx512-bf16", facts.leaf7_1_eax, 5}, {"avx512-vnni", facts.leaf7_ecx, 11}})});
  features.amx_refusal =
      first_of({features.avx512_bf16_refusal,
                missing_of({{"amx-tile", facts.leaf7_edx, 24},
                            {"amx-bf16", facts.leaf7_edx, 22},
                            {"amx-int8", facts.leaf7_edx, 25},
                            {"avx512-vbmi2", facts.leaf7_ecx, 6}}),
                unsaved_state(facts.xcr0, kTileState, "AMX tile"),
                facts.amx_permitted ? "" : "the kernel refused permission for AMX tile data"});
  features.avx_vnni =
      features.avx2_refusal.empty() && missing_of({{"avx-vnni", facts.leaf7_1_eax, 4}}).empty();
  features.avx512_vnni =
      features.avx512_refusal.empty() && missing_of({{"avx512-vnni", facts.leaf7_ecx, 11}}).empty();
  features.neon_refusal = missing_of({{"asimd", facts.hwcap, 1}, {"asimddp", facts.hwcap, 20}});
  features.i8mm_refusal = first_of({features.neon_refusal, missing_of({{"i8mm", facts.hwcap2, 13}})});
  features.bf16_refusal = first_of({features.i8mm_refusal, missing_of({{"bf16", facts.hwcap2, 14}})});
  features.fast_bf16_pairs = features.avx512_bf16_refusal.empty() && facts.is_amd;
  return features;
}

const CpuFeatures& cpu_features() {
  static const CpuFeatures features = judge_cpu(read_facts());
  return features;
}

}  // namespace outrider
