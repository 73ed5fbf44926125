// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "ranks/communicator.h"

namespace outrider {

// A job whose ranks are threads of this process.
class ThreadRanks {
 public:
  // The last `spare` ranks may end without the others.
  explicit ThreadRanks(int size, int spare = 0);
  ~ThreadRanks();

  // The view of one rank, for its thread; valid as long as the job.
  Communicator& of(int rank);

 private:
  class Member;
  struct Job;
  std::unique_ptr<Job> job_;
  std::vector<std::unique_ptr<Member>> members_;
};

}  // namespace outrider
