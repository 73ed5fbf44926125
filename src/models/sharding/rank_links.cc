// SPDX-License-Identifier: Apache-2.0
#include "models/sharding/rank_links.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/log.h"
#include "device/device_list.h"
#include "device/nccl_links.h"
#include "ranks/peer_watch.h"

namespace outrider {
namespace {

// Bytes come down from the device, go to the other ranks as messages, and go up again.
class HostLinks final : public DeviceLinks {
 public:
  HostLinks(Device& device, Communicator& ranks) : device_(device), ranks_(ranks) {}

  void exchange(std::span<const DeviceTransfer> transfers) override {
    for (const DeviceTransfer& one : transfers) {
      if (one.is_receive) continue;
      bytes_.resize(static_cast<size_t>(one.bytes));
      device_.download(one.at, bytes_);
      ranks_.send(bytes_, one.rank);
    }
    for (const DeviceTransfer& one : transfers) {
      if (!one.is_receive) continue;
      bytes_.resize(static_cast<size_t>(one.bytes));
      ranks_.receive(bytes_, one.rank);
      device_.upload(bytes_, one.at);
    }
  }

 private:
  Device& device_;
  Communicator& ranks_;
  std::vector<std::byte> bytes_;
};

// A rank offers this to a group of NCCL.
struct Offer {
  ProcessPlace place = {};
  int version = 0;          // 0: it has no NCCL
  NcclLibrary::Id id = {};  // of the first rank, for all
};

// The values of all ranks, by rank.
template <typename Value>
std::vector<Value> tell_all(Communicator& ranks, const Value& own) {
  std::vector<Value> values(static_cast<size_t>(ranks.size()), own);
  const auto bytes_of = [&](int rank) {
    return std::as_writable_bytes(std::span(&values[static_cast<size_t>(rank)], 1));
  };
  for (int other = 0; other < ranks.size(); ++other) {
    if (other != ranks.rank()) ranks.send(bytes_of(ranks.rank()), other);
  }
  for (int other = 0; other < ranks.size(); ++other) {
    if (other != ranks.rank()) ranks.receive(bytes_of(other), other);
  }
  return values;
}

Offer offer_of(const Result<NcclLibrary>& nccl, const ProcessPlace& place, bool is_first) {
  Offer offer{.place = place};
  if (nccl.ok() && (!is_first || nccl->make_id(&offer.id) == 0)) offer.version = nccl->version;
  return offer;
}

std::string rank_text(size_t rank) { return "rank " + std::to_string(rank); }

// Why these ranks are no group; empty: they may be.
std::string obstacle(const std::vector<Offer>& offers) {
  for (size_t rank = 0; rank < offers.size(); ++rank) {
    const Offer& offer = offers[rank];
    if (offer.version == 0) return rank_text(rank) + " has no NCCL";
    if (offer.version != offers.front().version) return rank_text(rank) + " has another version of NCCL";
    for (size_t other = 0; other < rank; ++other) {
      const ProcessPlace& place = offers[other].place;
      if (place.is_beside(offer.place) && place.process == offer.place.process)
        return "ranks are threads of one process; start them with mpirun for NCCL";
    }
  }
  return {};
}

// Ranks that a rank exchanges numbers with in passes.
std::vector<int> partners_of(const ModelPart& part) {
  std::vector<int> partners;
  for (int shard = 0; shard < part.shard.count; ++shard) {
    if (shard != part.shard.index) partners.push_back(part.rank_of(part.stage, shard));
  }
  if (!part.is_first_stage()) partners.push_back(part.rank_of(part.stage - 1, part.shard.index));
  if (!part.is_last_stage()) partners.push_back(part.rank_of(part.stage + 1, part.shard.index));
  return partners;
}

// Exchanges of a number with all partners, at once and by a list. The first one makes the connections.
class Trial {
 public:
  Trial(Device& device, DeviceLinks& links, const ModelPart& part)
      : device_(device),
        links_(links),
        partners_(partners_of(part)),
        own_(part.ranks->rank()),
        numbers_(static_cast<size_t>(part.ranks->size())),
        memory_(device, std::ssize(numbers_) * kBytes) {
    for (const int other : partners_) {
      transfers_.push_back({.at = at(own_), .bytes = kBytes, .rank = other});
      transfers_.push_back({.at = at(other), .bytes = kBytes, .rank = other, .is_receive = true});
    }
  }

  bool exchange() {
    write(1);
    links_.exchange(transfers_);
    return has_all(1);
  }
  bool load() {
    DeviceList list;
    list.exchange(links_, transfers_);
    auto loaded = device_.load(std::move(list));
    if (loaded.ok()) list_ = std::move(*loaded);
    return loaded.ok();
  }
  bool run() {
    write(2);
    list_->run();
    return has_all(2);
  }

 private:
  static constexpr int64_t kBytes = sizeof(int);

  DeviceAddress at(int rank) const { return memory_.address() + static_cast<DeviceAddress>(rank * kBytes); }
  int number(int rank, int turn) const { return static_cast<int>(numbers_.size()) * turn + rank; }
  void write(int turn) {
    std::ranges::fill(numbers_, number(own_, turn));
    device_.upload(std::as_bytes(std::span(numbers_)), memory_.address());
  }
  bool has_all(int turn) {
    device_.download(memory_.address(), std::as_writable_bytes(std::span(numbers_)));
    return std::ranges::all_of(
        partners_, [&](int other) { return numbers_[static_cast<size_t>(other)] == number(other, turn); });
  }

  Device& device_;
  DeviceLinks& links_;
  std::vector<int> partners_;
  int own_;
  std::vector<int> numbers_;
  DeviceBuffer memory_;
  std::vector<DeviceTransfer> transfers_;
  std::unique_ptr<LoadedList> list_;
};

// Why the ranks do not go on together; empty: all of them can.
std::string refusal(Communicator& ranks, bool own, const std::string& reason) {
  const std::vector<uint8_t> all = tell_all(ranks, static_cast<uint8_t>(own ? 1 : 0));
  const auto found = std::ranges::find(all, 0);
  if (found == all.end()) return {};
  return own ? rank_text(static_cast<size_t>(found - all.begin())) + " cannot exchange over NCCL" : reason;
}

// Every step is tried by all ranks or by none. Error: why these do not exchange over NCCL.
Result<std::unique_ptr<DeviceLinks>> links_over_nccl(CudaDevice& device, const ModelPart& part,
                                                     const Result<NcclLibrary>& nccl,
                                                     const ProcessPlace& place) {
  Communicator& ranks = *part.ranks;
  const std::vector<Offer> offers = tell_all(ranks, offer_of(nccl, place, ranks.rank() == 0));
  if (!nccl.ok()) return nccl.error();
  if (const std::string found = obstacle(offers); !found.empty()) return resource_error(found);
  auto joined = NcclLinks::join(
      device, *nccl,
      {.id = offers.front().id, .rank = ranks.rank(), .size = ranks.size(), .has_ended = [&ranks] {
         return ranks.ended() >= 0;
       }});
  std::string problem = refusal(ranks, joined.ok(), joined.ok() ? "" : joined.error().message);
  if (!problem.empty()) return resource_error(problem);
  Trial trial(device, **joined, part);
  problem = refusal(ranks, trial.exchange() && trial.load(), "NVIDIA's driver captures no exchanges");
  if (problem.empty()) problem = refusal(ranks, trial.run(), "NCCL has lost numbers");
  if (!problem.empty()) return resource_error(problem);
  return std::unique_ptr<DeviceLinks>(std::move(*joined));
}

}  // namespace

RankLinks::RankLinks(Device& device, const ModelPart& part)
    : device_(device),
      part_(part),
      links_(part.is_whole() ? nullptr : std::make_unique<HostLinks>(device, *part.ranks)),
      take_lists_(part.is_whole()) {}

void RankLinks::link() {
  if (part_.is_whole()) return;
  if (dynamic_cast<CudaDevice*>(&device_) != nullptr) return link_over(open_nccl(), ProcessPlace::own());
  take_lists_ = true;  // an emulated device is in this machine's memory
}

void RankLinks::link_over(const Result<NcclLibrary>& nccl, const ProcessPlace& place) {
  auto linked = links_over_nccl(dynamic_cast<CudaDevice&>(device_), part_, nccl, place);
  take_lists_ = linked.ok();
  if (linked.ok()) links_ = std::move(*linked);
  if (part_.ranks->rank() != 0) return;
  log_info(take_lists_ ? "GPUs exchange numbers over " + nccl->name()
                       : "GPUs exchange numbers through this machine's memory: " + linked.error().message);
}

void RankLinks::check() const {
  if (!links_) return;
  if (const std::string failure = links_->failure(); !failure.empty())
    throw RankFailure("expected numbers of the other ranks, found that " + failure + "; start the job again");
}

}  // namespace outrider
