// SPDX-License-Identifier: Apache-2.0
#include "cli/model_list.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace outrider {
namespace {

TEST(ModelList, HasWhatFitsIntoMemory) {
  const auto names = [](int64_t memory) {
    std::vector<std::string_view> found;
    for (const KnownModel& model : fitting_models(memory)) found.push_back(model.name);
    return found;
  };
  EXPECT_EQ(names(0), std::vector<std::string_view>{"smollm2"});
  EXPECT_EQ(names(700'000'000), (std::vector<std::string_view>{"smollm2", "qwen2.5-0.5b"}));
  EXPECT_EQ(names(int64_t{1} << 40).size(), known_models().size());
  EXPECT_TRUE(std::ranges::is_sorted(known_models(), {}, &KnownModel::bytes));
}

TEST(ModelList, TellsWhatAPassCanReach) {
  const KnownModel models[] = {{"small", "a/b", "", "", 100'000'000},
                               {"large", "a/c", "", "Q4_K_M", 2'500'000'000}};
  EXPECT_EQ(model_list_text(models, 20e9),
            "   1  small          100.0 MB   at most 200 tokens per second without drafts\n"
            "   2  large           2.50 GB   at most 8 tokens per second without drafts\n");
}

TEST(ModelList, MemoryIsReadAtSomeRate) { EXPECT_GT(measure_memory_rate(), 1e8); }

}  // namespace
}  // namespace outrider
