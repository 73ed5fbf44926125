// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "kv/state_storage.h"
#include "models/backend/float_address.h"
#include "models/backend/host/layer_ops.h"
#include "models/backend/shared_objects.h"
#include "models/weights/expert_stream.h"

namespace outrider {

class Block;

// Finds what a backend's names stand for in the memory of this machine.
class HostNames {
 public:
  virtual ~HostNames() = default;
  virtual float* at(FloatAddress numbers) const = 0;
  // The block with the numbers of the weights, for the block that the backend shows.
  virtual const Block& own(const Block& shown) const = 0;
  virtual HostStates& states(StateStorage& storage) const = 0;
};

// This machine as the steps of blocks find it.
class Host {
 public:
  // All must outlive it. stream: of experts that are not all in memory, or null
  Host(LayerOps& ops, const HostNames& names, ExpertStream* stream)
      : ops_(ops), names_(&names), expert_stream_(stream) {}

  LayerOps& ops() const { return ops_; }
  ExpertStream* expert_stream() const { return expert_stream_; }
  float* at(FloatAddress numbers) const { return names_->at(numbers); }
  HostStates& states(StateStorage& storage) const { return names_->states(storage); }
  template <typename Kind>
  const Kind& own(const Kind& shown) const {
    return static_cast<const Kind&>(names_->own(shown));
  }
  // The object that all blocks of a kind share, made of `args` when it is first wanted.
  template <typename Shared, typename... Args>
  Shared& shared(Args&&... args) {
    return shared_.of<Shared>(std::forward<Args>(args)...);
  }
  // From now on these names count; they must outlive it.
  void use_names(const HostNames& names) { names_ = &names; }

 private:
  LayerOps& ops_;
  const HostNames* names_;
  ExpertStream* expert_stream_;
  SharedObjects shared_;
};

}  // namespace outrider
