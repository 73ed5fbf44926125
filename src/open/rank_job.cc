// SPDX-License-Identifier: Apache-2.0
#include "open/rank_job.h"

#include <csignal>
#include <utility>

#include "config/environment.h"
#include "drafters/ranked/draft_worker.h"
#include "models/team/rank_worker.h"
#include "models/team/ranked_model.h"
#include "ranks/mpi_ranks.h"

namespace outrider {

Result<RankJob> RankJob::join(const EngineOptions& options) {
  const int of_target = options.tensor_parallel * options.pipeline_parallel;
  if (of_target + options.draft_ranks == 1 || !is_mpi_process()) return RankJob(nullptr, of_target);
  OUTRIDER_TRY(std::unique_ptr<Communicator> ranks, join_mpi_job(options.draft_ranks, options.rank_memory));
  return RankJob(std::move(ranks), of_target);
}

RankJob::~RankJob() {
  if (ranks_ && !is_worker()) end_job(*ranks_);
}

// Signals that end a job go to all ranks; rank 0 decides what happens to requests under way.
Status RankJob::serve() {
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, SIG_IGN);
  try {
    ranks_->rank() < first_draft_rank_ ? serve_rank(*ranks_) : serve_drafts(*ranks_);
  } catch (const RankFailure& failure) {
    return io_error("rank " + std::to_string(ranks_->rank()) + ": " + failure.what());
  }
  return {};
}

}  // namespace outrider
