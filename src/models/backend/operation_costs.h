// SPDX-License-Identifier: Apache-2.0
// The least work of the operations of a layer, for profiles.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/kernel_args.h"
#include "kernels/packed_matrix.h"
#include "kv/kv_cache.h"
#include "models/backend/attention_shape.h"
#include "models/pass_profile.h"

namespace outrider {

// An operation reads or writes so many f32.
OperationCost cost_of_numbers(int64_t numbers);
// One product has so many rows and all matrices, which read the same inputs. A shard may have none of them.
OperationCost cost_of_product(std::span<const PackedMatrix> matrices, int64_t rows);
// Every row is attended over the entries that it sees. Rows share the entries that they read.
OperationCost cost_of_attention(const AttentionShape& shape, const KvShape& cached,
                                std::span<const AttentionRow> rows);

}  // namespace outrider
