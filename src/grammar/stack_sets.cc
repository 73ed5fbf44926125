// SPDX-License-Identifier: Apache-2.0
#include "grammar/stack_sets.h"

#include <algorithm>
#include <tuple>

#include "base/counter_rng.h"

namespace outrider {
namespace {

constexpr int kMaxUniteDepth = 512;
constexpr size_t kMaxFrames = 4096;  // limit of one set

uint64_t hash_of(const std::vector<StackFrame>& frames) {
  uint64_t hash = frames.size();
  for (const StackFrame& frame : frames) {
    hash = mix64(hash ^ (static_cast<uint64_t>(frame.node) << 32 | static_cast<uint32_t>(frame.count)));
    hash = mix64(hash ^ static_cast<uint64_t>(frame.below));
  }
  return hash;
}

}  // namespace

StackSets::StackSets(const Grammar& grammar, int longest) : grammar_(grammar), longest_(longest) {
  begin_.push_back(0);
  intern({});
  intern({{.node = Grammar::kAcceptNode}});
  intern({{.node = Grammar::kEscapeNode}});
}

const Grammar::Loop* StackSets::loop_of(int32_t node) const {
  const Grammar::Node& found = grammar_.nodes[node];
  return found.kind == Grammar::NodeKind::kLoop ? &grammar_.loops[found.index] : nullptr;
}

StackSet StackSets::intern(const std::vector<StackFrame>& frames) {
  const uint64_t hash = hash_of(frames);
  const StackSet known = table_.find(hash, [&](StackSet set) {
    const std::span<const StackFrame> found = this->frames(set);
    return std::equal(found.begin(), found.end(), frames.begin(), frames.end());
  });
  if (known >= 0) return known;
  const auto set = static_cast<StackSet>(begin_.size() - 1);
  frames_.insert(frames_.end(), frames.begin(), frames.end());
  begin_.push_back(frames_.size());
  table_.insert(hash, set);
  canonical_.push_back(set);
  std::vector<StackFrame> plain = frames;
  bool is_plain = true;
  for (StackFrame& frame : plain) {
    const StackFrame before = frame;
    frame.count = canonical_count(frame, longest_);
    frame.below = frame.below == kNone ? kNone : canonical_[frame.below];
    is_plain = is_plain && frame == before;
  }
  if (!is_plain) {
    const StackSet simple = make(plain);
    if (simple != kTooMany) canonical_[set] = canonical_[simple];
  }
  return set;
}

StackSet StackSets::make(std::vector<StackFrame>& frames) {
  return normalize(frames, 0) ? intern(frames) : kTooMany;
}

bool StackSets::normalize(std::vector<StackFrame>& frames, int depth) {
  if (frames.size() <= 1) return true;
  std::sort(frames.begin(), frames.end(), [](const StackFrame& a, const StackFrame& b) {
    return std::tie(a.node, a.count, a.below) < std::tie(b.node, b.count, b.below);
  });
  size_t kept = 0;
  for (size_t i = 1; i < frames.size(); ++i) {
    StackFrame& last = frames[kept];
    const StackFrame& frame = frames[i];
    if (frame.node != last.node) {
      frames[++kept] = frame;
    } else if (frame.count == last.count) {
      last.below = unite(last.below, frame.below, depth + 1);
      if (last.below == kTooMany) return false;
    } else {
      // If both loops have run often enough, the frame that may run more often covers the other.
      const Grammar::Loop* loop = loop_of(frame.node);
      const bool is_covered = loop != nullptr && last.count >= loop->min && frame.below == last.below;
      if (!is_covered) frames[++kept] = frame;
    }
  }
  frames.resize(kept + 1);
  return frames.size() <= kMaxFrames;
}

StackSet StackSets::unite(StackSet a, StackSet b, int depth) {
  if (a == b || b == kNone) return a;
  if (a == kNone) return b;
  if (depth > kMaxUniteDepth) return kTooMany;
  if (a > b) std::swap(a, b);
  const uint64_t pair = static_cast<uint64_t>(a) << 32 | static_cast<uint32_t>(b);
  const auto known = unions_.find(pair);
  if (known != unions_.end()) return known->second;
  std::vector<StackFrame> all(frames(a).begin(), frames(a).end());
  all.insert(all.end(), frames(b).begin(), frames(b).end());
  const StackSet set = normalize(all, depth) ? intern(all) : kTooMany;
  unions_.emplace(pair, set);
  return set;
}

// A frame's loop is in its count-th run. A word of n bytes ends at most n runs, so it depends only on whether
// count, ..., count + n - 1 reach min and stay below max.
bool StackSets::is_far_from_bounds(const StackFrame& frame, int horizon) const {
  const Grammar::Loop* loop = loop_of(frame.node);
  if (loop == nullptr) return true;
  const int32_t last = frame.count + horizon - 1;
  return last < loop->min || (frame.count >= loop->min && (loop->max < 0 || last < loop->max));
}

int32_t StackSets::canonical_count(const StackFrame& frame, int horizon) const {
  const Grammar::Loop* loop = loop_of(frame.node);
  if (loop == nullptr || !is_far_from_bounds(frame, horizon)) return frame.count;
  return frame.count < loop->min ? 1 : std::max(loop->min, 1);
}

StackSets::LocalContext StackSets::local_context(StackSet set) {
  std::vector<StackFrame> chain;
  while (frames(set).size() == 1 && loop_of(frames(set)[0].node) != nullptr) {
    chain.push_back(frames(set)[0]);
    set = chain.back().below;
  }
  LocalContext context{kUnknown, longest_};
  for (const int horizon : {longest_, 32, 16, 8}) {
    const bool is_far = horizon <= longest_ &&
                        std::all_of(chain.begin(), chain.end(),
                                    [&](const StackFrame& f) { return is_far_from_bounds(f, horizon); });
    if (!is_far) continue;
    context.horizon = horizon;
    break;
  }
  for (size_t i = chain.size(); i-- > 0;) {
    std::vector<StackFrame> frame = {
        {chain[i].node, canonical_count(chain[i], context.horizon), context.stacks}};
    context.stacks = make(frame);
  }
  return context;
}

}  // namespace outrider
