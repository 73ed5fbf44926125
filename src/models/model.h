// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/thread_pool.h"
#include "device/device.h"
#include "formats/model_file.h"
#include "kernels/kernel_table.h"
#include "kv/kv_cache.h"
#include "models/backend/float_address.h"
#include "models/backend/placement.h"
#include "models/forward_batch.h"
#include "models/pass_profile.h"
#include "models/sharding/shard.h"
#include "outrider/drafter.h"
#include "outrider/result.h"

namespace outrider {

class AdapterSet;
class LayerBackend;

struct ModelOptions {
  const KernelTable* kernels = nullptr;
  ThreadPool* pool = nullptr;    // must outlive the model
  std::optional<DType> weights;  // type that stored matrices are converted to; nullopt: as stored
  int64_t context = 0;  // positions of the longest sequence; 0: as in training before any RoPE scaling
  std::filesystem::path packed_cache = {};  // folder for packed weights that later starts map; empty: none
  bool streams_layers = false;  // they are read from that folder when a pass needs them, see keep_layers()
  bool plans_only = false;      // beside it: no weights are packed or read, so that the model cannot run
  // Layers before this one are left out, so that every row must resume at it or later; the number of layers
  // leaves the embedding, the final norm and the output head, which drafters share.
  int64_t first_layer = 0;
  ModelPart part = {};           // that this rank has
  std::string_view device = {};  // name of a BackendKind; empty: this machine
  int device_number = 0;         // among the devices of that kind
  Placement placement = {};      // on a device: what this machine keeps

  Range own_layers(int64_t layer_count) const {
    return first_layer > 0 ? Range{first_layer, layer_count} : part.layers(layer_count);
  }
};

// The layers that a drafting pass of the network itself runs; the final norm and the output head follow.
struct LayerSubset {
  int64_t count = 0;                              // layers from the first on
  std::vector<uint8_t> skip_attention, skip_mlp;  // [layers], 1: that part is left out; empty: none is

  bool runs_attention(int64_t layer) const { return runs(skip_attention, layer); }
  bool runs_mlp(int64_t layer) const { return runs(skip_mlp, layer); }
  bool runs(int64_t layer) const { return runs_attention(layer) || runs_mlp(layer); }
  bool operator==(const LayerSubset&) const = default;

 private:
  static bool runs(const std::vector<uint8_t>& skip, int64_t layer) {
    return skip.empty() || skip[static_cast<size_t>(layer)] == 0;
  }
};

// Weights that are read from a file in every pass.
struct LayerStreaming {
  int64_t bytes = 0;       // that a pass over one row reads, if rows choose all experts alike
  int64_t kept_bytes = 0;  // of other weights, and of the buffers of reads
  int64_t layers = 0;      // that are read in every pass
  int64_t experts = 0;     // in all layers
  int64_t kept_experts = 0;
  double rate = 0;         // bytes per second, measured when the model was opened
  int64_t bytes_read = 0;  // so far
  double waited_ms = 0;    // for reads, so far
};

struct SubsetOutput {
  std::span<const float> logits;  // [rows, vocab_size]
  std::span<const float> states;  // [rows, hidden_size]: the residual stream after the last layer
};

// A decoder-only network, ready to run. Weights are packed for the kernel table; the file may be closed
// afterwards.
class Model {
 public:
  // Errors: an unknown family, parts that the family does not have (formats/families.h), a weight type that
  // cannot be converted, out of memory.
  static Result<std::unique_ptr<Model>> load(const ModelFile& file, const ModelOptions& options);
  virtual ~Model() = default;

  virtual const ModelConfig& config() const = 0;
  // The shape of the cache that this model writes, without the number of pages.
  virtual KvShape kv_shape() const = 0;
  virtual int64_t parameter_count() const = 0;
  virtual int64_t weight_bytes() const = 0;
  // True where the matrices are mapped from a file of packed weights.
  virtual bool maps_weights() const { return false; }
  // The bytes of weights that a pass over one row reads: all but tables and the experts that it does not use.
  virtual int64_t streamed_bytes() const { return weight_bytes(); }
  // The experts that the last pass read, counted in each layer; 0: the model has none.
  virtual int64_t active_experts() const { return 0; }
  // The bytes of weights that the last pass read.
  virtual int64_t pass_bytes() const { return streamed_bytes(); }

  // Keeps as many layers and experts in memory as `bytes` allow, where ModelOptions::streams_layers is set;
  // to be called before the first pass. Errors: see WeightStream::keep().
  virtual Status keep_layers(int64_t /*bytes*/) { return {}; }
  // Where the weights of a pass come from; nullopt: from memory.
  virtual std::optional<LayerStreaming> streaming() const { return std::nullopt; }

  // The adapters that rows of a batch may name; null: this model takes none, because ranks share it.
  virtual AdapterSet* adapters() { return nullptr; }

  // Gives ranks that share the model caches like this one, which must outlive the passes. Error: out of
  // memory.
  virtual Status share_cache(KvCache& /*cache*/) { return {}; }

  // Makes room for batches of that size: forward() over them does not allocate. Error: out of memory.
  virtual Status reserve(int64_t rows, int64_t logits_rows) = 0;

  // Runs the batch, writes keys and values of every row to its slot in `cache`, and returns the logits
  // [batch.logits_rows.size(), vocab_size], valid until the next call. Ids must be within the vocabulary.
  // A batch larger than reserved allocates, which throws std::bad_alloc when memory is out. Weights
  // that cannot be read throw ReadFailure, ranks that have ended RankFailure. Where ranks share the model,
  // all of them run the same passes, and the first shard of the last stage has the logits and the states.
  virtual std::span<const float> forward(const ForwardBatch& batch, KvCache& cache) = 0;
  // forward() in two parts, for callers that read few logits: a pass, and a row of its logits, valid until
  // the next pass.
  virtual void run_pass(const ForwardBatch& batch, KvCache& cache) = 0;
  virtual std::span<const float> logits_at(int64_t row) = 0;
  // These logits in the memory of backend(); null: they do not lie there.
  virtual FloatAddress logit_rows() { return {}; }

  // The backend of this model: draft heads compute with it, too. Addresses of its rows are good in all
  // backends of one kind.
  virtual LayerBackend& backend() = 0;
  // The memory of a cache that this model writes.
  virtual std::unique_ptr<KvStorage> make_storage(const KvShape& shape) = 0;

  // The features of the last pass, as features() has them, in the memory of backend(); null: not there.
  virtual FloatAddress feature_rows() { return {}; }

  // The outputs of the final norm for batch.hidden_state_rows of the last pass, [hidden_state_rows,
  // hidden_size], valid until the next one.
  virtual std::span<const float> hidden_states() = 0;
  // The states in the memory of backend().
  virtual FloatAddress hidden_rows() = 0;

  // Runs a part of the network and writes the keys and values of the layers whose attention runs; they equal
  // forward()'s where all layers before run whole. Precondition: logits of every row are wanted, states of
  // none, and no row resumes.
  virtual SubsetOutput forward_subset(const ForwardBatch& batch, KvCache& cache,
                                      const LayerSubset& layers) = 0;

  // Makes every later pass without resumed rows keep these features of all its rows. Where the output of the
  // last layer is tapped, that layer runs for rows without logits, too. `taps.layers` rise within [0, layer
  // count].
  virtual void tap(FeatureTaps taps) = 0;
  virtual int64_t feature_size() const = 0;  // numbers per row
  // The features of the last pass, [batch rows, feature_size()], valid until the next one.
  virtual std::span<const float> features() = 0;

  // Orders so far to the device that has the model; nullopt: this machine has it.
  virtual std::optional<DeviceCounts> device_counts() const { return std::nullopt; }
  // Milliseconds in which the device copies half as many bytes, so that it reads and writes so many; nullopt:
  // this machine computes.
  virtual std::optional<double> device_copy_ms(int64_t /*bytes*/) { return std::nullopt; }

  // The messages that this rank has sent to others so far.
  virtual Traffic traffic() const { return {}; }

  // Every later pass adds the times of its operations to the profile, which must outlive them; nullptr: none.
  virtual void measure_into(PassProfile* profile) = 0;

  // The next two are parts of the target that drafters share, over rows in the memory of backend(). Rows of
  // its embedding as they enter the first layer, [tokens, hidden_size], but without learned positions:
  virtual void embed_tokens(std::span<const TokenId> tokens, FloatAddress out) = 0;
  // The output head without the final norm: `states` is [rows, hidden_size], the result [rows, vocab_size],
  // valid until the next call or pass.
  virtual FloatAddress output_head(FloatAddress states, int64_t rows) = 0;
};

}  // namespace outrider
