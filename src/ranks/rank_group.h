// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "ranks/communicator.h"

namespace outrider {

// Some ranks of a job as a job of their own.
class RankGroup final : public Communicator {
 public:
  // members: ranks of the whole job, by their rank in the group; this process is one of them
  RankGroup(std::shared_ptr<Communicator> all, std::vector<int> members);

  // The neighbours in the whole job, because all share the machine.
  int neighbours() const override { return all_->neighbours(); }
  int place() const override { return all_->place(); }
  void receive(std::span<std::byte> data, int from) override { all_->receive(data, member(from)); }
  bool has_message(int from) override { return all_->has_message(member(from)); }
  void fail() override { all_->fail(); }
  int ended() const override { return all_->ended(); }  // as the whole job numbers it

 private:
  void post(std::span<const std::byte> data, int to) override { all_->send(data, member(to)); }
  int member(int rank) const { return members_[static_cast<size_t>(rank)]; }

  std::shared_ptr<Communicator> all_;
  std::vector<int> members_;
};

}  // namespace outrider
