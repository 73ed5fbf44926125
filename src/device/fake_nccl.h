// SPDX-License-Identifier: Apache-2.0
// NCCL for tests: ranks are threads, each with a fake GPU.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "device/fake_cuda_driver.h"
#include "device/nccl_library.h"

namespace outrider {

struct FakeNccl {
  using Message = std::vector<std::byte>;
  struct Group {
    int joined = 0;
    std::map<std::pair<int, int>, std::deque<Message>> messages = {};  // by sender and receiver
  };
  struct Rank {
    Rank(Group* of, int number) : group(of), rank(number) {}
    Group* group;
    int rank;
    bool is_aborted = false;
  };
  struct Call {
    bool is_receive;
    void* at;
    size_t bytes;
    int other;
    Rank* rank;
    NcclLibrary::Stream stream;
  };

  std::mutex mutex = {};  // of all below
  std::condition_variable change = {};
  int ids = 0;
  std::map<std::array<char, 128>, Group> groups = {};
  std::deque<Rank> all_ranks = {};  // a GPU may still wait for one that has left
  int ranks = 0;                    // that have joined and not left
  int aborted = 0;
  std::atomic<int> join_code = 0, call_code = 0, failure = 0;
};

// It outlives all threads that join a group.
inline FakeNccl& fake_nccl() {
  static FakeNccl* const fake = new FakeNccl();
  return *fake;
}

namespace fake {

inline std::vector<FakeNccl::Call>& nccl_calls() {
  static thread_local std::vector<FakeNccl::Call> calls;
  return calls;
}

inline int join_group(NcclLibrary::Group* joined, int size, NcclLibrary::Id id, int rank) {
  FakeNccl& nccl = fake_nccl();
  if (nccl.join_code != 0) return nccl.join_code;
  std::unique_lock lock(nccl.mutex);
  FakeNccl::Group& group = nccl.groups[id.bytes];
  ++group.joined;
  ++nccl.ranks;
  nccl.change.notify_all();
  nccl.change.wait(lock, [&] { return group.joined == size; });
  return *joined = &nccl.all_ranks.emplace_back(&group, rank), 0;
}

// The GPU waits for messages until the group is aborted.
inline int run_calls(const std::vector<FakeNccl::Call>& calls) {
  FakeNccl& nccl = fake_nccl();
  std::unique_lock lock(nccl.mutex);
  for (const FakeNccl::Call& call : calls) {
    if (call.is_receive || call.rank->is_aborted) continue;
    const auto* from = static_cast<const std::byte*>(call.at);
    call.rank->group->messages[{call.rank->rank, call.other}].emplace_back(from, from + call.bytes);
  }
  nccl.change.notify_all();
  for (const FakeNccl::Call& call : calls) {
    if (!call.is_receive) continue;
    auto& messages = call.rank->group->messages[{call.other, call.rank->rank}];
    nccl.change.wait(lock, [&] { return !messages.empty() || call.rank->is_aborted; });
    if (call.rank->is_aborted) return 0;
    if (messages.front().size() != call.bytes) return kInvalid;
    std::memcpy(call.at, messages.front().data(), call.bytes);
    messages.pop_front();
  }
  return 0;
}

// Calls on a stream that is captured become a node.
inline int end_calls() {
  const auto calls = std::exchange(nccl_calls(), {});
  if (fake_nccl().call_code != 0) return fake_nccl().call_code;
  if (calls.empty() || calls.front().stream == nullptr) {
    complete_uploads();
    return run_calls(calls);
  }
  if (fake_cuda().captured == nullptr) return kInvalid;
  auto node = std::make_unique<FakeCuda::Node>();
  node->calls.emplace_back([calls] { return run_calls(calls); });
  fake_cuda().captured->nodes.push_back(std::move(node));
  return 0;
}

inline int end_rank(NcclLibrary::Group joined, bool is_aborted) {
  const std::lock_guard lock(fake_nccl().mutex);
  --fake_nccl().ranks;
  if (!is_aborted) return 0;
  ++fake_nccl().aborted;
  static_cast<FakeNccl::Rank*>(joined)->is_aborted = true;
  fake_nccl().change.notify_all();
  return 0;
}

}  // namespace fake

// The functions of a library of this kind.
inline NcclLibrary fake_nccl_library() {
  NcclLibrary nccl;
  nccl.version = 22703;
  nccl.make_id = [](NcclLibrary::Id* id) {
    const std::lock_guard lock(fake_nccl().mutex);
    const int number = ++fake_nccl().ids;
    return std::memcpy(id->bytes.data(), &number, sizeof(number)), 0;
  };
  nccl.join = fake::join_group;
  nccl.leave = [](NcclLibrary::Group group) { return fake::end_rank(group, false); };
  nccl.abort = [](NcclLibrary::Group group) { return fake::end_rank(group, true); };
  nccl.get_failure = [](NcclLibrary::Group, int* code) { return *code = fake_nccl().failure, 0; };
  nccl.begin_calls = [] { return fake::nccl_calls().clear(), 0; };
  nccl.end_calls = fake::end_calls;
  nccl.send = [](const void* from, size_t bytes, int type, int rank, NcclLibrary::Group group,
                 NcclLibrary::Stream stream) {
    fake::nccl_calls().push_back(
        {false, const_cast<void*>(from), bytes, rank, static_cast<FakeNccl::Rank*>(group), stream});
    return type == kNcclBytes ? 0 : fake::kInvalid;
  };
  nccl.receive = [](void* to, size_t bytes, int type, int rank, NcclLibrary::Group group,
                    NcclLibrary::Stream stream) {
    fake::nccl_calls().push_back({true, to, bytes, rank, static_cast<FakeNccl::Rank*>(group), stream});
    return type == kNcclBytes ? 0 : fake::kInvalid;
  };
  nccl.error_text = [](int) { return "a fake error"; };
  return nccl;
}

}  // namespace outrider
