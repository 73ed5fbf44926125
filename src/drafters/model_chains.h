// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>

#include "kv/kv_cache.h"
#include "models/backend/device/device_backend.h"
#include "models/backend/device/device_chooser.h"
#include "models/backend/device/device_draft.h"
#include "models/backend/device/pass_rows.h"
#include "models/model.h"

namespace outrider {

// Chains that a draft model on a device drafts for a DeviceLoop, with its entries in a cache beside the
// target's: the passes that a DeviceDraft records.
class ModelChains {
 public:
  // Model and cache outlive it. vocab_size: ids that may be drafted. Error: the model is not on a device, or
  // has a part that cannot be recorded. Throws std::bad_alloc.
  static Result<std::unique_ptr<ModelChains>> make(Model& model, KvCache& cache, int64_t vocab_size,
                                                   const DeviceDraft::Shape& shape);

  // A sequence of a run; without entries it drafts nothing.
  struct Row {
    const KvSequence* kv = nullptr;
    ChoiceRow choice = {};
  };
  void start(std::span<const Row> rows);
  // See DeviceDraft.
  void record(const simt::Chains& chains, DeviceList& list);
  int64_t moves() const { return backend_.moves(); }

 private:
  ModelChains(DeviceBackend& backend, Model& model, KvCache& cache, int64_t vocab_size,
              const DeviceDraft::Shape& shape);
  void record_level(const simt::DraftChainsArgs& args, int64_t rows);

  DeviceBackend& backend_;
  Model& model_;
  KvCache& cache_;
  DevicePassRows rows_;
  DeviceChooser chooser_;
  DeviceNumbers<int> going_;  // whether another level is drafted
};

}  // namespace outrider
