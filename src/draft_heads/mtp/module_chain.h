// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "draft_heads/recurrent_head.h"

namespace outrider {

// MTP modules: one that drafts every level from its own states, or several of which module k drafts level k
// from the states of module k - 1. Subclasses have the modules.
class ModuleChain : public RecurrentHead {
 public:
  int64_t state_size() const override { return count_ * hidden_size_; }
  int max_draft_len() const override {
    return is_chained() ? static_cast<int>(count_) : RecurrentHead::max_draft_len();
  }
  bool carries_state() const override { return is_chained(); }
  Output forward(const Pass& pass) final;
  void reserve(int64_t rows, int64_t wanted) override;

 protected:
  ModuleChain(const ModelConfig& config, Model* target, const ModelOptions& options, int64_t count)
      : RecurrentHead(config, target, options), count_(count) {
    taps_.final_norm = true;
  }

  bool is_chained() const { return count_ > 1; }
  // states[rows, hidden] of a module of several, from inputs[rows, hidden] and embedded_. No row sees entries
  // before entry `module`, where that module's first row stands.
  virtual void run(const Pass& pass, size_t module, FloatAddress inputs, FloatAddress states) = 0;
  // forward() of a single module.
  virtual Output run_single(const Pass& pass) = 0;
  virtual const Norm& output_norm(size_t module) const = 0;
  // joined_[rows, 2 hidden] = the normalised embeddings and inputs
  void join_inputs(const Norm& embedding_norm, const Norm& hidden_norm, FloatAddress inputs, int64_t rows);
  FloatAddress normalise(size_t module, FloatAddress states, int64_t rows);

  BackendRows embedded_{backend_}, hidden_{backend_}, joined_{backend_};  // [rows, hidden], joined twice that
  BackendRows states_{backend_};  // [rows, hidden] of each module in turn
  BackendRows normed_{backend_};  // [rows, hidden]

 private:
  Output forward_chained(const Pass& pass);
  void gather_inputs(const Pass& pass, size_t module, FloatAddress previous);

  int64_t count_;
  BackendRows inputs_{backend_};  // [rows, hidden] of a module after the first
  BackendRows kept_{backend_};    // [wanted rows, state_size()]
};

}  // namespace outrider
