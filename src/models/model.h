// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "formats/model_file.h"
#include "kernels/kernel_table.h"
#include "kv/kv_cache.h"
#include "models/forward_batch.h"
#include "outrider/drafter.h"
#include "outrider/result.h"

namespace outrider {

struct ModelOptions {
  const KernelTable* kernels = nullptr;
  ThreadPool* pool = nullptr;               // must outlive the model
  std::optional<DType> weights;             // stored matrices are converted to this type; nullopt: as stored
  std::filesystem::path packed_cache = {};  // folder for packed weights that later starts map; empty: none
};

// What a drafting pass of the network itself runs; final norm and output head follow.
struct LayerSubset {
  int64_t count = 0;                              // the first so many layers, less what is skipped of them
  std::vector<uint8_t> skip_attention, skip_mlp;  // by layer, 1: left out; empty: none is

  bool runs_attention(int64_t layer) const { return runs(skip_attention, layer); }
  bool runs_mlp(int64_t layer) const { return runs(skip_mlp, layer); }

 private:
  static bool runs(const std::vector<uint8_t>& skip, int64_t layer) {
    return skip.empty() || skip[static_cast<size_t>(layer)] == 0;
  }
};

struct SubsetOutput {
  std::span<const float> logits;  // [rows, vocab_size]
  std::span<const float> states;  // [rows, hidden_size]: the residual stream after the last layer
};

// A decoder-only network, ready to run. Weights are packed for the kernel table; the file may be closed
// afterwards.
class Model {
 public:
  // Errors: a family without loader, a weight type that cannot be converted, out of memory.
  static Result<std::unique_ptr<Model>> load(const ModelFile& file, const ModelOptions& options);
  virtual ~Model() = default;

  virtual const ModelConfig& config() const = 0;
  // Shape of the cache this model writes, pages excepted.
  virtual KvShape kv_shape() const = 0;
  virtual int64_t parameter_count() const = 0;
  virtual int64_t weight_bytes() const = 0;
  // Matrices are those of a file of packed weights, mapped.
  virtual bool maps_weights() const { return false; }
  // Of these, what every pass reads: all but the embedding table.
  virtual int64_t streamed_bytes() const { return weight_bytes(); }

  // Makes room for batches of that size: forward() over them does not allocate. Error: out of memory.
  virtual Status reserve(int64_t rows, int64_t logits_rows) = 0;

  // Runs the batch, writes keys and values of every row to its slot in `cache`, and returns the logits
  // [batch.logits_rows.size(), vocab_size], valid until the next call. Ids must be within the vocabulary.
  // Larger batches than reserved make it grow, which throws std::bad_alloc when memory is out.
  virtual std::span<const float> forward(const ForwardBatch& batch, KvCache& cache) = 0;

  // The same with a part of the network; writes keys and values of the layers whose attention runs, which are
  // those of forward() where all layers before run whole. Precondition: logits of every row are wanted, and
  // no row resumes.
  virtual SubsetOutput forward_subset(const ForwardBatch& batch, KvCache& cache,
                                      const LayerSubset& layers) = 0;

  // From now on every pass keeps these features of all its rows, which costs the last layer of rows without
  // logits where its output is tapped; but none of a pass with resumed rows. Layers rise within [0, layer
  // count].
  virtual void tap(FeatureTaps taps) = 0;
  virtual int64_t feature_size() const = 0;  // numbers per row
  // Of the last pass: [batch rows, feature_size()], valid until the next one.
  virtual std::span<const float> features() = 0;

  // What drafters share with the target. Rows of its embedding, [tokens, hidden_size]:
  virtual void embed_tokens(std::span<const TokenId> tokens, float* out) const = 0;
  // states [rows, hidden_size] W' of its output head, without the final norm: [rows, vocab_size], valid until
  // the next call or pass.
  virtual std::span<const float> output_head(const float* states, int64_t rows) = 0;
  // Its final norm, [rows, hidden_size]; out may be states.
  virtual void normalize_output(const float* states, float* out, int64_t rows) const = 0;
};

}  // namespace outrider
