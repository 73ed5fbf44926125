// SPDX-License-Identifier: Apache-2.0
#include "kernels/kernel_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/kernel_test_data.h"
#include "platform/cpu_features.h"

namespace outrider {
namespace {

using testing::HasSubstr;

TEST(SelectKernels, ReferenceIsAlwaysThere) {
  const auto names = available_kernels();
  ASSERT_FALSE(names.empty());
  EXPECT_EQ(names.front(), "reference");
}

TEST(SelectKernels, AnEmptyNamePicksTheFastest) {
  const auto table = select_kernels("");
  ASSERT_TRUE(table.ok());
  EXPECT_EQ((*table)->name, available_kernels().back());
}

TEST(SelectKernels, ANameOverridesTheChoice) {
  for (std::string_view name : available_kernels()) {
    const auto table = select_kernels(name);
    ASSERT_TRUE(table.ok()) << name;
    EXPECT_EQ((*table)->name, name);
  }
}

TEST(SelectKernels, AnUnknownNameListsTheKnownOnes) {
  const auto table = select_kernels("sse9");
  ASSERT_FALSE(table.ok());
  EXPECT_EQ(table.error().kind, ErrorKind::kUsage);
#if defined(__aarch64__)
  const std::string known = "neon, i8mm, bf16";
#else
  const std::string known = std::string("avx2_portable, avx2, ") +
                            (cpu_features().fast_bf16_pairs ? "avx512, avx512_bf16" : "avx512_bf16, avx512") +
                            ", amx";
#endif
  EXPECT_EQ(table.error().message, "unknown kernels 'sse9'; choose one of: reference, " + known);
}

TEST(SelectKernels, AMissingInstructionSetIsNamed) {
  const CpuFeatures& features = cpu_features();
#if defined(__aarch64__)
  const std::pair<const char*, const std::string*> levels[] = {
      {"neon", &features.neon_refusal}, {"i8mm", &features.i8mm_refusal}, {"bf16", &features.bf16_refusal}};
#else
  const std::pair<const char*, const std::string*> levels[] = {{"avx2", &features.avx2_refusal},
                                                               {"avx512", &features.avx512_refusal},
                                                               {"avx512_bf16", &features.avx512_bf16_refusal},
                                                               {"amx", &features.amx_refusal}};
#endif
  bool any = false;
  for (const auto& [name, refusal] : levels) {
    if (refusal->empty()) continue;
    any = true;
    const auto table = select_kernels(name);
    ASSERT_FALSE(table.ok());
    EXPECT_EQ(table.error().kind, ErrorKind::kUsage);
    EXPECT_THAT(table.error().message, HasSubstr(*refusal));
  }
  if (!any) GTEST_SKIP() << "this machine runs every table";
}

TEST(Pack, RefusesWhatIsNoMatrixOfWholeBlocks) {
  const std::vector<std::byte> bytes(4096);
  for (const KernelTable* table : tables_to_test()) {
    const auto ragged = pack_matrix(*table, {DType::kQ8_0, {2, 33}, bytes.data()});
    ASSERT_FALSE(ragged.ok());
    EXPECT_THAT(ragged.error().message, HasSubstr("multiple of 32"));
    EXPECT_FALSE(pack_matrix(*table, {DType::kF32, {8}, bytes.data()}).ok());
    EXPECT_FALSE(pack_matrix(*table, {DType::kF32, {0, 8}, bytes.data()}).ok());
    EXPECT_FALSE(pack_matrix(*table, {DType::kBF16, {2, 2, 2}, bytes.data()}).ok());
  }
}

}  // namespace
}  // namespace outrider
