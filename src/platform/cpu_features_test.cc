// SPDX-License-Identifier: Apache-2.0
#include "platform/cpu_features.h"

#include <gtest/gtest.h>

namespace outrider {
namespace {

CpuFacts sapphire_rapids() {
  CpuFacts facts;
  facts.leaf1_ecx = 1u << 12 | 1u << 27 | 1u << 28 | 1u << 29;
  facts.leaf7_ebx = 1u << 5 | 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31;
  facts.leaf7_ecx = 1u << 6 | 1u << 11;
  facts.leaf7_edx = 1u << 22 | 1u << 24 | 1u << 25;
  facts.leaf7_1_eax = 1u << 5;
  facts.xcr0 = 0x602E7;
  facts.amx_permitted = true;
  return facts;
}

TEST(CpuFeatures, AllLevelsOnAFullMachine) {
  const CpuFeatures features = judge_cpu(sapphire_rapids());
  EXPECT_EQ(features.avx2_refusal, "");
  EXPECT_EQ(features.avx512_refusal, "");
  EXPECT_EQ(features.avx512_bf16_refusal, "");
  EXPECT_EQ(features.amx_refusal, "");
}

TEST(CpuFeatures, Bf16PairsAreASetOfTheirOwn) {
  CpuFacts facts = sapphire_rapids();
  EXPECT_FALSE(judge_cpu(facts).fast_bf16_pairs);
  facts.is_amd = true;
  facts.leaf7_edx = 0;
  EXPECT_EQ(judge_cpu(facts).avx512_bf16_refusal, "");
  EXPECT_EQ(judge_cpu(facts).amx_refusal, "the processor lacks amx-tile, amx-bf16, amx-int8");
  EXPECT_TRUE(judge_cpu(facts).fast_bf16_pairs);
  facts.leaf7_1_eax = 0;
  EXPECT_EQ(judge_cpu(facts).avx512_refusal, "");
  EXPECT_EQ(judge_cpu(facts).avx512_bf16_refusal, "the processor lacks avx512-bf16");
  EXPECT_EQ(judge_cpu(facts).amx_refusal, judge_cpu(facts).avx512_bf16_refusal);
  EXPECT_FALSE(judge_cpu(facts).fast_bf16_pairs);
}

TEST(CpuFeatures, NamesEveryMissingInstructionSet) {
  CpuFacts facts = sapphire_rapids();
  facts.leaf7_ebx &= ~(1u << 30 | 1u << 17);
  const CpuFeatures features = judge_cpu(facts);
  EXPECT_EQ(features.avx2_refusal, "");
  EXPECT_EQ(features.avx512_refusal, "the processor lacks avx512bw, avx512dq");
  EXPECT_EQ(features.amx_refusal, features.avx512_refusal);
}

TEST(CpuFeatures, AnOldProcessorHasNothing) {
  const CpuFeatures features = judge_cpu({});
  EXPECT_EQ(features.avx2_refusal, "the processor lacks avx, avx2, fma, f16c");
  EXPECT_NE(features.avx512_refusal, "");
  EXPECT_NE(features.amx_refusal, "");
}

TEST(CpuFeatures, TheOperatingSystemMustSaveTheRegisters) {
  CpuFacts facts = sapphire_rapids();
  facts.xcr0 = 0x7;
  EXPECT_EQ(judge_cpu(facts).avx2_refusal, "");
  EXPECT_EQ(judge_cpu(facts).avx512_refusal, "the operating system does not save the AVX-512 registers");
  facts.xcr0 = 0xE7;
  EXPECT_EQ(judge_cpu(facts).avx512_refusal, "");
  EXPECT_EQ(judge_cpu(facts).amx_refusal, "the operating system does not save the AMX tile registers");
}

TEST(CpuFeatures, AmxNeedsPermission) {
  CpuFacts facts = sapphire_rapids();
  facts.amx_permitted = false;
  EXPECT_EQ(judge_cpu(facts).avx512_refusal, "");
  EXPECT_EQ(judge_cpu(facts).amx_refusal, "the kernel refused permission for AMX tile data");
}

TEST(CpuFeatures, ArmTellsThemInTwoWords) {
  constexpr uint64_t kGraviton2 = 1u << 1 | 1u << 20;
  EXPECT_EQ(judge_cpu({.hwcap = 1u << 1}).neon_refusal, "the processor lacks asimddp");
  EXPECT_EQ(judge_cpu({.hwcap = kGraviton2}).neon_refusal, "");
  EXPECT_EQ(judge_cpu({.hwcap = kGraviton2}).i8mm_refusal, "the processor lacks i8mm");
  EXPECT_EQ(judge_cpu({.hwcap = kGraviton2}).bf16_refusal, "the processor lacks i8mm");
  EXPECT_EQ(judge_cpu({.hwcap = kGraviton2, .hwcap2 = 1u << 13}).bf16_refusal, "the processor lacks bf16");
  const CpuFeatures graviton3 = judge_cpu({.hwcap = kGraviton2, .hwcap2 = 1u << 13 | 1u << 14});
  EXPECT_EQ(graviton3.bf16_refusal, "");
  EXPECT_EQ(graviton3.avx2_refusal, "the processor lacks avx, avx2, fma, f16c");
  EXPECT_EQ(judge_cpu(sapphire_rapids()).neon_refusal, "the processor lacks asimd, asimddp");
}

}  // namespace
}  // namespace outrider
