// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "outrider/engine.h"
#include "ranks/communicator.h"

namespace outrider {

// The job of mpirun that a command runs in, where its options ask for ranks: first the ranks that have the
// target, then the ranks that draft. Ends the job when it goes away at rank 0.
class RankJob {
 public:
  // Joins the job where there is one. Errors: see join_mpi_job().
  static Result<RankJob> join(const EngineOptions& options);
  RankJob(RankJob&&) = default;
  ~RankJob();

  // Null: no ranks are asked for, or they are threads of this process.
  const std::shared_ptr<Communicator>& ranks() const { return ranks_; }
  // This process serves another one, which runs the command.
  bool is_worker() const { return ranks_ && ranks_->rank() > 0; }
  // Runs as a worker. Error: another rank has ended.
  Status serve();

 private:
  RankJob(std::shared_ptr<Communicator> ranks, int first_draft_rank)
      : ranks_(std::move(ranks)), first_draft_rank_(first_draft_rank) {}

  std::shared_ptr<Communicator> ranks_;
  int first_draft_rank_ = 0;
};

}  // namespace outrider
