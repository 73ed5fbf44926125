// SPDX-License-Identifier: Apache-2.0
#include "models/weights/stored_part.h"

#include "platform/direct_file.h"

namespace outrider {

void StoredPart::place(std::byte* data) const {
  for (const auto& [packed, offset] : matrices)
    packed->data = Buffer::borrowed({data + offset, static_cast<size_t>(packed->bytes())});
}

ReadMemory::ReadMemory(size_t size) : buffer(size + DirectFile::kBlock) {
  const auto address = reinterpret_cast<uintptr_t>(buffer.data());
  const size_t gap = (DirectFile::kBlock - address % DirectFile::kBlock) % DirectFile::kBlock;
  bytes = {buffer.data() + gap, size};
}

}  // namespace outrider
