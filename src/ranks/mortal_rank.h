// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ranks/communicator.h"

namespace outrider {

// A rank that ends before its exchange number `end`, counted from 1; 0: never.
class MortalRank final : public Communicator {
 public:
  MortalRank(Communicator& rank, int64_t end)
      : Communicator(rank.rank(), rank.size()), rank_(rank), left_(end) {}

  int neighbours() const override { return rank_.neighbours(); }
  int place() const override { return rank_.place(); }
  void fail() override { rank_.fail(); }
  int ended() const override { return rank_.ended(); }
  void receive(std::span<std::byte> data, int from) override {
    live();
    rank_.receive(data, from);
  }
  bool has_message(int from) override { return rank_.has_message(from); }

 private:
  void post(std::span<const std::byte> data, int to) override {
    live();
    rank_.send(data, to);
  }
  void live() {
    if (--left_ != 0) return;
    rank_.fail();
    throw RankFailure(rank());
  }

  Communicator& rank_;
  int64_t left_;
};

}  // namespace outrider
