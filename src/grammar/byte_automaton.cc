// SPDX-License-Identifier: Apache-2.0
#include "grammar/byte_automaton.h"

#include <algorithm>
#include <queue>
#include <tuple>
#include <unordered_set>

#include "base/counter_rng.h"

namespace outrider {
namespace {

using NodeKind = Grammar::NodeKind;

constexpr size_t kMaxVisits = 50'000;            // limit of nodes visited for one byte
constexpr size_t kMaxBytes = size_t{256} << 20;  // limit of the memory of all states
constexpr size_t kMaxRowEntries = size_t{8} << 20;

}  // namespace

// Finds all nodes that can be reached without reading a byte. Calls are collected by procedure and processed
// callers first, so that each procedure is entered once, above the union of the stacks it was called on.
struct ByteAutomaton::Closure {
  Closure(const Grammar& owner, StackSets& sets)
      : grammar(owner), stacks(sets), called(owner.procedures.size()) {}

  struct Visit {
    int32_t node;
    StackSet stacks;
    bool is_entry;  // no byte was read since the procedure was called
    friend bool operator==(const Visit&, const Visit&) = default;
  };
  struct HashVisit {
    size_t operator()(const Visit& visit) const {
      return mix64(static_cast<uint64_t>(visit.node) << 32 | static_cast<uint32_t>(visit.stacks) << 1 |
                   (visit.is_entry ? 1 : 0));
    }
  };

  void begin() {
    items.clear();
    may_end = may_escape = is_too_large = false;
    seen.clear();
    for (const int32_t procedure : by_rank_called()) called[procedure].clear();
    pending = {};
    visits = 0;
  }

  std::vector<int32_t> by_rank_called() {
    std::vector<int32_t> procedures;
    while (!pending.empty()) {
      procedures.push_back(grammar.by_rank[pending.top()]);
      pending.pop();
    }
    return procedures;
  }

  void explore(int32_t node, StackSet set, bool is_entry) {
    const Visit visit{node, set, is_entry};
    if (seen.insert(visit).second) open.push_back(visit);
  }

  // `node` was reached in the procedure that stands on `set`; a loop there has run `count` times.
  void arrive(int32_t node, int32_t count, StackSet set, bool is_entry) {
    const Grammar::Node& at = grammar.nodes[node];
    if (at.kind != NodeKind::kLoop) {
      explore(node, set, is_entry);
      return;
    }
    const Grammar::Loop& loop = grammar.loops[at.index];
    if (count >= loop.min) explore(at.next, set, is_entry);
    if (loop.max >= 0 && count >= loop.max) return;
    const int32_t next = loop.max < 0 ? std::min(count + 1, std::max(loop.min, 1)) : count + 1;
    call(loop.body, {node, next, set});
  }

  void call(int32_t procedure, const StackFrame& frame) {
    if (called[procedure].empty()) pending.push(grammar.procedures[procedure].rank);
    called[procedure].push_back(frame);
  }

  void run() {
    drain();
    while (!pending.empty() && !is_too_large) {
      const int32_t procedure = grammar.by_rank[pending.top()];
      pending.pop();
      const StackSet set = stacks.make(called[procedure]);
      called[procedure].clear();
      if (set == StackSets::kTooMany) {
        is_too_large = true;
        return;
      }
      explore(grammar.procedures[procedure].entry, set, true);
      drain();
    }
  }

  void drain() {
    while (!open.empty()) {
      const Visit visit = open.back();
      open.pop_back();
      if (++visits > kMaxVisits) {
        is_too_large = true;
        open.clear();
        return;
      }
      look(visit);
    }
  }

  void look(const Visit& visit) {
    const Grammar::Node& node = grammar.nodes[visit.node];
    switch (node.kind) {
      case NodeKind::kBytes:
        items.push_back({visit.node, visit.stacks});
        return;
      case NodeKind::kSplit:
        for (int32_t i = 0; i < node.count; ++i) {
          explore(grammar.targets[node.index + i], visit.stacks, visit.is_entry);
        }
        return;
      case NodeKind::kCall:
        if (grammar.nodes[node.next].kind == NodeKind::kReturn) {
          for (const StackFrame& frame : stacks.frames(visit.stacks)) call(node.index, frame);
        } else {
          call(node.index, {node.next, 0, visit.stacks});
        }
        if (grammar.procedures[node.index].is_nullable) explore(node.next, visit.stacks, visit.is_entry);
        return;
      case NodeKind::kLoop:
        arrive(visit.node, 0, visit.stacks, visit.is_entry);
        return;
      case NodeKind::kReturn: {
        // The procedure read nothing; its callers already continue after an empty procedure.
        if (visit.is_entry) return;
        const auto frames = stacks.frames(visit.stacks);
        visits += frames.size();
        for (const StackFrame& frame : frames) arrive(frame.node, frame.count, frame.below, false);
        return;
      }
      case NodeKind::kAccept:
        may_end = true;
        return;
      case NodeKind::kEscape:
        may_escape = true;
        return;
    }
  }

  const Grammar& grammar;
  StackSets& stacks;
  std::vector<Item> items;
  bool may_end = false;
  bool may_escape = false;
  bool is_too_large = false;
  size_t visits = 0;
  std::vector<Visit> open;
  std::unordered_set<Visit, HashVisit> seen;
  std::vector<std::vector<StackFrame>> called;  // by procedure: return frames of its calls
  std::priority_queue<int32_t, std::vector<int32_t>, std::greater<>> pending;  // ranks of `called`
};

ByteAutomaton::ByteAutomaton(std::shared_ptr<const Grammar> grammar, int longest)
    : grammar_(std::move(grammar)),
      class_count_(grammar_->class_byte.size()),
      stacks_(*grammar_, longest),
      closure_(std::make_unique<Closure>(*grammar_, stacks_)) {
  Closure& closure = *closure_;
  closure.begin();
  // The root procedure returns to the end of the text.
  closure.call(grammar_->root, {.node = Grammar::kAcceptNode});
  if (grammar_->procedures[grammar_->root].is_nullable) closure.may_end = true;
  closure.run();
  if (!closure.is_too_large) start_ = intern(closure.items, closure.may_end, false);
}

ByteAutomaton::~ByteAutomaton() = default;

ByteAutomaton::State ByteAutomaton::advance_anew(State state, int byte_class) {
  if (records_[state].row < 0) {
    if (rows_.size() > kMaxRowEntries) clear_rows();
    rows_.resize((row_owners_.size() + 1) * class_count_, kUnknown);
    row_owners_.push_back(state);
    records_[state].row = static_cast<int32_t>(row_owners_.size()) - 1;
  }
  const State next = step(state, byte_class);
  rows_[static_cast<size_t>(records_[state].row) * class_count_ + byte_class] = next;
  return next;
}

ByteAutomaton::State ByteAutomaton::step(State state, int byte_class) {
  const uint8_t byte = grammar_->class_byte[byte_class];
  Closure& closure = *closure_;
  closure.begin();
  for (const Item& item : items(state)) {
    const Grammar::Node& node = grammar_->nodes[item.node];
    if (grammar_->byte_sets[node.index].test(byte)) closure.explore(node.next, item.stacks, false);
  }
  if (closure.open.empty()) return kDead;
  closure.run();
  if (closure.is_too_large || bytes() > kMaxBytes) return kDead;
  return intern(closure.items, closure.may_end, closure.may_escape);
}

ByteAutomaton::State ByteAutomaton::intern(std::vector<Item>& items, bool may_end, bool may_escape) {
  // Merges the items of one node into one with the union of their stack sets.
  std::sort(items.begin(), items.end(), [](const Item& a, const Item& b) {
    return std::tie(a.node, a.stacks) < std::tie(b.node, b.stacks);
  });
  size_t kept = 0;
  for (size_t i = 0; i < items.size(); ++i) {
    if (kept > 0 && items[kept - 1].node == items[i].node) {
      items[kept - 1].stacks = stacks_.unite(items[kept - 1].stacks, items[i].stacks);
      if (items[kept - 1].stacks == StackSets::kTooMany) return kDead;
    } else {
      items[kept++] = items[i];
    }
  }
  items.resize(kept);
  std::sort(items.begin(), items.end(), [](const Item& a, const Item& b) {
    return std::tie(a.stacks, a.node) < std::tie(b.stacks, b.node);
  });
  uint64_t hash = (may_end ? 1 : 0) | (may_escape ? 2 : 0);
  for (const Item& item : items) {
    hash = mix64(hash ^ (static_cast<uint64_t>(item.node) << 32 | static_cast<uint32_t>(item.stacks)));
  }
  const State known = table_.find(hash, [&](State state) {
    const std::span<const Item> found = this->items(state);
    return records_[state].may_end == may_end && records_[state].may_escape == may_escape &&
           std::equal(found.begin(), found.end(), items.begin(), items.end());
  });
  if (known >= 0) return known;
  const auto state = static_cast<State>(records_.size());
  records_.push_back(
      {.begin = items_.size(), .end = items_.size() + kept, .may_end = may_end, .may_escape = may_escape});
  items_.insert(items_.end(), items.begin(), items.end());
  table_.insert(hash, state);
  return state;
}

ByteAutomaton::State ByteAutomaton::canonical(State state) {
  if (records_[state].canonical >= 0) return records_[state].canonical;
  std::vector<Item> plain(items(state).begin(), items(state).end());
  for (Item& item : plain) item.stacks = stacks_.canonical(item.stacks);
  const State found = intern(plain, records_[state].may_end, records_[state].may_escape);
  records_[state].canonical = found == kDead ? state : found;
  return records_[state].canonical;
}

ByteAutomaton::LocalState ByteAutomaton::local_state(std::span<const Item> items) {
  std::vector<Item> local(items.begin(), items.end());
  const StackSets::LocalContext context = stacks_.local_context(local.front().stacks);
  for (Item& item : local) item.stacks = context.stacks;
  return {intern(local, false, false), context.horizon};
}

void ByteAutomaton::clear_rows() {
  for (const State state : row_owners_) records_[state].row = -1;
  row_owners_.clear();
  rows_.clear();
}

size_t ByteAutomaton::bytes() const {
  return stacks_.bytes() + items_.capacity() * sizeof(Item) + records_.size() * (sizeof(Record) + 64) +
         rows_.capacity() * sizeof(State);
}

}  // namespace outrider
