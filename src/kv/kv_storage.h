// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kv/state_storage.h"
#include "tensor/buffer.h"
#include "tensor/dtype.h"

namespace outrider {

// The keys, or values, of one entry in one layer.
struct KvHeads {
  int64_t count = 0;
  int64_t dim = 0;
  bool operator==(const KvHeads&) const = default;
};

struct KvShape {
  int64_t layer_count = 0;
  int64_t kv_head_count = 0;
  int64_t head_dim = 0;
  DType type = DType::kF32;  // of the stored numbers: F32, BF16, F16 or Q8_0
  int page_size = 16;        // entries per page, >= 1
  int64_t page_count = 0;    // pages in the pool
  // A row sees at most the last `window` entries of its sequence, in every layer; 0: all.
  int64_t window = 0;
  // [layer_count], where layers differ; empty: all have the heads above.
  std::vector<KvHeads> layers = {};
  bool values_are_keys = false;  // entries have only keys, which are read as values, too
  // Further layers, which keep a state in place of keys and values.
  StateShape states = {};

  KvHeads heads(int64_t layer) const {
    return layers.empty() ? KvHeads{kv_head_count, head_dim} : layers[static_cast<size_t>(layer)];
  }
  // Size in bytes of one entry's keys, or values, in that layer.
  int64_t row_bytes(int64_t layer = 0) const {
    return heads(layer).count * cached_head_bytes(type, heads(layer).dim);
  }
  // Size in bytes of one entry's keys and values in the layers before `layer`.
  int64_t bytes_before(int64_t layer) const;
  int64_t page_bytes() const { return page_size * bytes_before(layer_count); }
  int64_t total_bytes() const {
    return page_count * page_bytes() +
           (states.sequence_count + states.checkpoint_count) * states.bytes_per_sequence();
  }
};

// A move of entries from slots to other slots, in every layer.
struct KvMove {
  int64_t from = 0;
  int64_t to = 0;
  int64_t count = 0;
};

enum class KvPart : uint8_t { kKeys, kValues };

// The keys, or the values, of an entry in one layer.
struct KvRow {
  int64_t layer = 0;
  KvPart part = KvPart::kKeys;
  int64_t slot = 0;
};

// The memory of a cache's entries and states. The cache knows only slots; where and how their numbers lie is
// a matter of the storage and of the operations that read it.
class KvStorage {
 public:
  KvStorage() = default;
  virtual ~KvStorage() = default;
  KvStorage(const KvStorage&) = delete;
  KvStorage& operator=(const KvStorage&) = delete;

  virtual void move(const KvMove& move) = 0;
  // Makes all numbers of `count` slots NaN.
  virtual void poison(int64_t first_slot, int64_t count) = 0;
  // Makes all numbers of `count` slots 0.
  virtual void clear(int64_t first_slot, int64_t count) = 0;
  // Writes head h of the row, f32 [head_dim of the layer], to out + h * stride.
  virtual void read(const KvRow& row, float* out, int64_t stride) const = 0;

  // Copies all numbers of `count` slots as they are stored, [layers, keys then values, slots], keys alone
  // where these are the values: out of the storage, and into it.
  virtual void save(int64_t first_slot, int64_t count, std::byte* to) const = 0;
  virtual void load(int64_t first_slot, int64_t count, const std::byte* from) = 0;
  // Whether other threads may load slots that nobody else reads or writes.
  virtual bool loads_on_any_thread() const { return false; }

  virtual StateStorage& states() = 0;
};

// The bytes of all slots. Throws std::bad_alloc when no memory is that large.
size_t storage_bytes(const KvShape& shape);
// Where the keys or values of a layer begin, in bytes; where values are keys, both are at one place.
int64_t begin_of(const KvShape& shape, int64_t layer, KvPart part);
// Calls take(begin, row_bytes) for the keys, then for the values, of every layer; once where they are one.
template <typename Take>
void for_each_part(const KvShape& shape, Take&& take) {
  for (int64_t layer = 0; layer < shape.layer_count; ++layer) {
    take(begin_of(shape, layer, KvPart::kKeys), shape.row_bytes(layer));
    if (!shape.values_are_keys) take(begin_of(shape, layer, KvPart::kValues), shape.row_bytes(layer));
  }
}
// The largest row of the shape, with NaN in every number.
std::vector<std::byte> row_of_nan(const KvShape& shape);
// Writes head h of a stored row, f32, to out + h * stride.
void read_heads(DType type, const KvHeads& heads, const std::byte* row, float* out, int64_t stride);

// Entries in this machine's memory, as the kernels read them.
class HostPages final : public KvStorage {
 public:
  // Throws std::bad_alloc when the entries do not fit in memory.
  explicit HostPages(const KvShape& shape);

  void move(const KvMove& move) override;
  void poison(int64_t first_slot, int64_t count) override;
  void clear(int64_t first_slot, int64_t count) override;
  void read(const KvRow& row, float* out, int64_t stride) const override;
  void save(int64_t first_slot, int64_t count, std::byte* to) const override;
  void load(int64_t first_slot, int64_t count, const std::byte* from) override;
  bool loads_on_any_thread() const override { return true; }
  HostStates& states() override { return states_; }

  // [page_count * page_size, heads of the layer] head vectors of cached_head_bytes() each
  std::byte* keys(int64_t layer) { return storage_.data() + begin_of(shape_, layer, KvPart::kKeys); }
  std::byte* values(int64_t layer) { return storage_.data() + begin_of(shape_, layer, KvPart::kValues); }

 private:
  KvShape shape_;
  Buffer storage_;  // [layer_count, keys then values, slots, heads]
  HostStates states_;
  std::vector<std::byte> poisoned_row_;  // NaN in every number of the largest row; empty: not yet needed
};

}  // namespace outrider
