// SPDX-License-Identifier: Apache-2.0
// Messages of rank 0 to the other ranks of a model, as bytes. All ranks run one program, so bytes are numbers
// as they are in memory; a message that does not fit is a bug.
#pragma once

#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "base/check.h"
#include "models/model.h"
#include "ranks/communicator.h"

namespace outrider {

enum class RankCommand : uint8_t {
  kOpen,        // RankSettings; answered by RankAnswer
  kLink,        // devices to one another
  kMeasure,     // whether the operations of passes are measured
  kCache,       // CacheSettings; answered
  kReserve,     // rows, rows with logits; answered
  kTap,         // FeatureTaps
  kPass,        // moves in the cache, batch, layers
  kEmbed,       // tokens
  kOutputHead,  // rows, states
  kClose,       // the model is no longer needed
  // To ranks that draft (drafters/ranked):
  kOpenDrafter,  // DrafterSettings; answered by DrafterAnswer
  kDraft,        // number of the drafter, orders; answered by trees
  kReply,        // to a question about a constraint
  kForget,       // number of the drafter, sequence
  kQuit,         // the job is over
};

class MessageWriter {
 public:
  explicit MessageWriter(RankCommand command) { field(command); }
  MessageWriter() = default;

  template <typename T>
  requires std::is_trivially_copyable_v<T>
  void field(const T& value) { append(std::as_bytes(std::span(&value, 1))); }
  template <typename T>
  void field(const std::vector<T>& values) {
    field(values.size());
    append(std::as_bytes(std::span(values)));
  }
  void field(const std::string& text) {
    field(text.size());
    append(std::as_bytes(std::span(text)));
  }

  void append(std::span<const std::byte> raw);

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

class MessageReader {
 public:
  explicit MessageReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  template <typename T>
  requires std::is_trivially_copyable_v<T>
  void field(T& value) { copy(&value, sizeof(T)); }
  template <typename T>
  void field(std::vector<T>& values) {
    size_t size = 0;
    field(size);
    values.resize(size);
    copy(values.data(), size * sizeof(T));
  }
  void field(std::string& text) {
    size_t size = 0;
    field(size);
    text.resize(size);
    copy(text.data(), size);
  }

 private:
  void copy(void* to, size_t size) {
    OUTRIDER_CHECK(size <= rest_.size());
    if (size > 0) std::memcpy(to, rest_.data(), size);
    rest_ = rest_.subspan(size);
  }

  std::span<const std::byte> rest_;
};

// How a rank opens its part of a model.
struct RankSettings {
  std::string model;    // path of its files, the same on every machine
  std::string kernels;  // name of the kernel table
  std::string packed_cache;
  std::string device;  // name of a BackendKind, of which each rank of a machine has another device
  bool converts = false;
  DType weights = DType::kF32;  // where it converts
  int64_t context = 0;
  int threads = 0;  // 0: this rank's share of its machine
  int shards = 1;
  int stages = 1;
  int64_t micro_rows = 0;  // see PartPass
};

struct CacheSettings {
  int page_size = 0;
  DType type = DType::kF32;
  int64_t pages = 0;
};

struct RankAnswer {
  ErrorKind kind = ErrorKind::kInput;
  std::string error;  // empty: it worked
  int64_t weight_bytes = 0;
};

// A pass: everything that its results depend on, besides weights and the entries of the cache.
struct PassOrder {
  std::vector<KvMove> moves = {};  // in the cache since the last pass
  ForwardBatch batch;
  bool is_subset = false;
  LayerSubset layers = {};  // of a subset
};

template <typename Archive, typename Settings>
requires std::is_same_v<std::remove_const_t<Settings>, RankSettings>
void each_field(Archive& archive, Settings& settings) {
  for (auto* text : {&settings.model, &settings.kernels, &settings.packed_cache, &settings.device})
    archive.field(*text);
  archive.field(settings.converts);
  archive.field(settings.weights);
  archive.field(settings.context);
  archive.field(settings.threads);
  archive.field(settings.shards);
  archive.field(settings.stages);
  archive.field(settings.micro_rows);
}

template <typename Archive, typename Answer>
requires std::is_same_v<std::remove_const_t<Answer>, RankAnswer>
void each_field(Archive& archive, Answer& answer) {
  archive.field(answer.kind);
  archive.field(answer.error);
  archive.field(answer.weight_bytes);
}

template <typename Archive, typename Batch>
requires std::is_same_v<std::remove_const_t<Batch>, ForwardBatch>
void each_field(Archive& archive, Batch& batch) {
  for (auto* list : {&batch.tokens, &batch.positions, &batch.slots, &batch.sequences, &batch.prefix_len,
                     &batch.tail_begin, &batch.tails, &batch.page_begin, &batch.pages, &batch.logits_rows,
                     &batch.hidden_state_rows, &batch.resumed_rows})
    archive.field(*list);
  archive.field(batch.states);
  archive.field(batch.resume_layer);
  archive.field(batch.resumed_states);
}

template <typename Archive, typename Order>
requires std::is_same_v<std::remove_const_t<Order>, PassOrder>
void each_field(Archive& archive, Order& order) {
  archive.field(order.moves);
  each_field(archive, order.batch);
  archive.field(order.is_subset);
  archive.field(order.layers.count);
  archive.field(order.layers.skip_attention);
  archive.field(order.layers.skip_mlp);
}

// A message with its size before it.
void send_message(Communicator& ranks, const MessageWriter& message, int to);
std::vector<std::byte> receive_message(Communicator& ranks, int from);

}  // namespace outrider
