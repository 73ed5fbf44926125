// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "formats/adapters/adapter_file.h"
#include "kernels/kernel_table.h"
#include "models/weights/weight_list.h"
#include "outrider/result.h"

namespace outrider {

// The update of some outputs of a product, packed: outputs first_output and up get scale * B (A x) added.
struct PackedUpdate {
  PackedMatrix a = {};  // [rank, k]
  PackedMatrix b = {};  // [n, rank]
  int64_t first_output = 0;
  float scale = 1;
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

  // The updates of a product by an adapter; empty: it does not change the product.
  std::span<const PackedUpdate> updates(int32_t adapter, const Projection& product) const;
  int64_t bytes() const;  // of all adapters

 private:
  using Updates = std::map<const Projection*, std::vector<PackedUpdate>>;
  struct Place {
    const Projection* product = nullptr;
    int64_t first_output = 0;
  };
  Result<PackedMatrix> pack(const TensorView& view) const;

  const KernelTable& kernels_;
  std::multimap<std::string, Place, std::less<>> places_;  // by names of matrices; keys may be values, too
  std::vector<Updates> adapters_;                          // an empty one has been removed
};

}  // namespace outrider
