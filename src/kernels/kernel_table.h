// SPDX-License-Identifier: Apache-2.0
// The contract between models and instruction sets: one table of functions per instruction set, chosen once.
//
// Row invariance is the promise everything else stands on. The bits of an output row depend only on that
// row's inputs, on the weights' shape and on the row's own KV length. They never depend on how many rows
// share the call, on the other rows' contents, on the worker count or on page size. Every table is
// deterministic; tables may differ by rounding.
//
// Functions compute the share of one worker and never allocate, throw, or read the environment. The caller
// separates dependent calls by a barrier (ThreadPool::run returns).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/isa_ops.h"
#include "kernels/packed_matrix.h"
#include "kernels/quants.h"
#include "outrider/result.h"
#include "tensor/tensor_view.h"

namespace outrider {

struct KernelTable : IsaOps {
  std::string_view name;

  // Returns the packed matrix without its data, which allocate() adds. Every DType has a layout. Error: k is
  // no multiple of the dtype's block.
  Result<PackedMatrix> (*layout)(const MatrixSource& source);
  // Converts the worker's share of panels from the source into the allocated matrix.
  void (*pack)(const MatrixSource& source, PackedMatrix& packed, Worker worker);
};

// Writes the cosines, then the sines, of position * inverse_frequency[i], times `factor`, to rotations
// [2 * frequencies]; all tables share it. Angle, cosine, sine and product are each rounded to f32, as Hugging
// Face's models compute them.
void fill_rotations(int32_t position, std::span<const float> inverse_frequency, float factor,
                    float* rotations);

// Whether a table adds in the order that processors and devices share, so that texts do not depend on which
// of them computes. Other tables are profiles of their own: they have other products or other sums.
bool has_portable_bits(std::string_view name);

// Names of the tables this machine can run, slowest first; "reference" is always there.
std::vector<std::string_view> available_kernels();

// `name` empty picks the fastest table the machine can run. Error: unknown name (lists the valid ones), or an
// instruction set this machine lacks (says what is missing).
Result<const KernelTable*> select_kernels(std::string_view name);

// layout(), allocate() and pack() by one worker.
Result<PackedMatrix> pack_matrix(const KernelTable& kernels, const TensorView& matrix);

// Size in bytes of `rows` rows of k inputs in the given layout; 0 where products read x itself.
int64_t input_bytes(InputLayout layout, int64_t rows, int64_t k);

}  // namespace outrider
