// SPDX-License-Identifier: Apache-2.0
// Learned drafters for the targets of the suites: the shipped ones, and others with fake weights.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "draft_heads/fake_head.h"
#include "outrider/speculative_options.h"

namespace outrider {

// The sizes of a target that a head's tensors depend on.
struct HeadTarget {
  int64_t hidden = 0, heads = 0, kv_heads = 0, layers = 0, vocab = 0;
};
inline constexpr HeadTarget kSmallTarget{64, 4, 2, 2, 288};      // tests/data/models/llama
inline constexpr HeadTarget kDefaultTarget{256, 4, 2, 6, 4096};  // models/outrider-small

struct MoaShape {
  bool uses_lsa = true, uses_cross = true;
  int tli = 0;
};
std::unique_ptr<FakeHead> make_moa(const HeadTarget& target, const MoaShape& shape);
std::unique_ptr<FakeHead> make_medusa(const HeadTarget& target, int heads);
std::unique_ptr<FakeHead> make_dflash(const HeadTarget& target);
// A DFlash head with a first layer that sees a window.
std::unique_ptr<FakeHead> make_sliding_dflash(const HeadTarget& target);
// A DFlash2 head; its first layer sees a window.
std::unique_ptr<FakeHead> make_dflash2(const HeadTarget& target);
// first_place: of a block that proposes a token, 0 or 1
std::unique_ptr<FakeHead> make_dspark(const HeadTarget& target, int first_place);
std::unique_ptr<FakeHead> make_mtp(const HeadTarget& target, int modules);
// One of the checkpoints in tests/data/heads/recurrent.json, for the small target.
std::unique_ptr<FakeHead> make_recurrent(const std::string& golden);

// A head for the small target.
struct HeadCase {
  const char* name;
  Method method;
  std::unique_ptr<FakeHead> (*make)();
};
std::vector<HeadCase> head_cases();
// One of the checkpoints in tests/data/heads/assistant.json, for tests/data/models/gemma4.
std::unique_ptr<FakeHead> make_assistant(bool has_clusters);
std::string gemma_target();
// A draft model for the small target that was "trained" for PARD; it is no head.
std::unique_ptr<FakeHead> make_pard(const HeadTarget& target);
HeadCase pard_case();

// Directory of a drafter for the default target by its short name ("eagle3", "moa_tli_3"), made when it is
// first asked for; empty: there is no such drafter.
std::filesystem::path default_head(const std::string& name);

}  // namespace outrider
