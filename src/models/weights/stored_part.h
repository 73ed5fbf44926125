// SPDX-License-Identifier: Apache-2.0
// Matrices in a file of packed weights, and memory to read them into.
#pragma once

#include <cstddef>
#include <span>
#include <stdexcept>
#include <vector>

#include "kernels/packed_matrix.h"
#include "outrider/result.h"
#include "tensor/buffer.h"

namespace outrider {

// Weights could not be read in the middle of a pass.
class ReadFailure : public std::runtime_error {
 public:
  explicit ReadFailure(const Error& error) : std::runtime_error(error.message) {}
};

// Matrices of a layer or of an expert, which are read together and lie one after the other in the file.
struct StoredPart {
  struct Matrix {
    PackedMatrix* packed = nullptr;
    size_t offset = 0;  // from `begin`
  };
  size_t begin = 0;  // offset in the file, a multiple of DirectFile::kBlock
  size_t bytes = 0;  // a multiple of DirectFile::kBlock
  std::vector<Matrix> matrices;

  // Makes the matrices borrow their data from memory that the part was read into.
  void place(std::byte* data) const;
};

// Memory at an address that direct reads accept.
struct ReadMemory {
  ReadMemory() = default;
  explicit ReadMemory(size_t size);

  Buffer buffer;
  std::span<std::byte> bytes;
};

}  // namespace outrider
