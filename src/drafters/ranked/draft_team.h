// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "models/team/messages.h"
#include "outrider/drafter.h"
#include "ranks/communicator.h"

namespace outrider {

// The ranks that draft, as the engine sees them: ranks 1, 2, ... of a job; the engine is rank 0. Each takes
// its orders one after another and answers in the same order, so that several may be under way. A rank that
// ends, or has a drafter that fails, is left out from then on; its orders get no answer.
class DraftTeam {
 public:
  // Orders that went to one rank in one message.
  struct Orders {
    // The constraint of order number i; null: its request is gone.
    std::function<TokenConstraint*(int)> constraint;
    // Takes the answer; not called where the rank is left out.
    std::function<void(MessageReader&)> take;
  };

  // Ranks that are processes. threads: of each; 0: its share of its machine.
  DraftTeam(std::shared_ptr<Communicator> ranks, int threads);
  // `count` ranks that are threads of this process, with `threads` threads each. Their devices come after the
  // devices of `target_ranks` other ranks.
  static std::shared_ptr<DraftTeam> of_threads(int count, int threads, int target_ranks = 1);
  ~DraftTeam();
  DraftTeam(const DraftTeam&) = delete;
  DraftTeam& operator=(const DraftTeam&) = delete;

  int size() const { return ranks_->size() - 1; }
  int threads() const { return threads_; }
  // The number of the device of the machine's first rank; later ranks have the next ones.
  int first_device() const { return first_device_; }
  bool works(int rank) const { return works_[static_cast<size_t>(rank)]; }

  // The number of the next drafter.
  int next_drafter() { return drafters_++; }

  // Opens drafter number `drafter` at a rank; errors come from the rank.
  Result<DrafterMemory> open(int rank, const MessageWriter& settings);
  // Tells a rank something that has no answer.
  void tell(int rank, const MessageWriter& message);
  void order(int rank, const MessageWriter& message, Orders orders);
  // Waits for the answer to the oldest orders of a rank. False: there are none.
  bool collect(int rank);
  // Leaves a rank out.
  void dismiss(int rank, const std::string& reason);

  Traffic traffic() const { return ranks_->traffic(); }
  // Orders that were answered with drafts made before they came (GuessedVerdicts).
  int64_t foreseen() const { return foreseen_; }

 private:
  struct Threads;  // the other ranks, where they are threads of this process

  void reply(int rank, const Orders& orders, MessageReader& question);

  std::unique_ptr<Threads> own_threads_;
  std::shared_ptr<Communicator> ranks_;
  int threads_;
  int first_device_ = 0;
  int drafters_ = 0;                           // opened so far
  int64_t foreseen_ = 0;                       // orders
  std::vector<bool> works_;                    // [ranks]
  std::vector<std::deque<Orders>> under_way_;  // [ranks], oldest first
};

}  // namespace outrider
