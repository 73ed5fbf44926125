// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <thread>

#include "models/team/messages.h"
#include "models/team/part_pass.h"

namespace outrider {

// The threads of a rank that was not told a number: its bound processors, or else an equal share of its
// machine's.
int threads_of_rank(const Communicator& ranks);

// A rank's part of a model, opened.
class OpenedPart {
 public:
  // Errors: as of open_model(), select_kernels() and Model::load().
  static Result<std::unique_ptr<OpenedPart>> open(const RankSettings& settings, Communicator& ranks);

  Model& model() { return *model_; }
  const ModelPart& part() const { return part_; }
  // Makes room for the keys and values of this rank. Error: out of memory.
  Status make_cache(const CacheSettings& settings);
  void tap(const FeatureTaps& taps) { pass_->tap(taps); }
  void run(const PassOrder& order);

 private:
  OpenedPart(const RankSettings& settings, Communicator& ranks);

  ThreadPool pool_;
  ModelPart part_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<KvCache> cache_;
  std::optional<PartPass> pass_;
};

// Obeys rank 0 until the job is over. Throws RankFailure and std::bad_alloc; either ends the job.
void serve_rank(Communicator& ranks);

}  // namespace outrider
