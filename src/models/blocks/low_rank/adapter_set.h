// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "formats/adapters/adapter_file.h"
#include "kernels/kernel_table.h"
#include "models/weights/weight_list.h"
#include "outrider/result.h"

namespace outrider {

// The updates of one product by one adapter, packed: W x becomes W x + scale * B (A x) for some of its
// outputs.
struct PackedUpdates {
  struct Expansion {
    PackedMatrix b = {};  // [outputs, rank]
    int64_t first_rank = 0;
    int64_t first_output = 0;
    float scale = 1;
  };
  PackedMatrix a = {};  // [sum of ranks, k]: the A of all expansions
  std::vector<Expansion> expansions = {};

  int64_t bytes() const;
  // Multiplications for one row.
  int64_t operations() const;
};

// The adapters of a model, packed for the products that they change.
class AdapterSet {
 public:
  // `products`: that BlockPass::project() computes; they must outlive the set.
  AdapterSet(const KernelTable& kernels, std::vector<const Projection*> products);

  // Packs an adapter; returns its number, from 0 on. Errors: a matrix that no such product has, out of
  // memory.
  Result<int32_t> add(const AdapterFile& file);
  // Gives its memory back. No later row may name it.
  void remove(int32_t adapter);

  // The updates of a product by an adapter; null: it does not change the product.
  std::shared_ptr<const PackedUpdates> updates(int32_t adapter, const Projection& product) const;
  int64_t bytes() const;  // of all adapters

 private:
  using Adapter = std::map<const Projection*, std::shared_ptr<const PackedUpdates>>;
  struct Place {
    const Projection* product = nullptr;
    int64_t first_output = 0;
  };
  // An update and where it goes.
  struct Placed {
    const LowRankUpdate* update = nullptr;
    int64_t first_output = 0;
  };
  Result<std::shared_ptr<const PackedUpdates>> pack(std::span<const Placed> placed) const;
  Result<PackedMatrix> pack_matrix(std::span<const TensorView> parts) const;

  const KernelTable& kernels_;
  std::multimap<std::string, Place, std::less<>> places_;  // by names of matrices; keys may be values, too
  std::vector<Adapter> adapters_;                          // an empty one has been removed
};

}  // namespace outrider
