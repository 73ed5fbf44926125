// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "formats/model_file.h"
#include "kernels/kernel_table.h"
#include "outrider/result.h"
#include "platform/mapped_file.h"

namespace outrider {

// A matrix on its way from a model file into the layout of a kernel table.
struct PackingJob {
  std::string names;              // of its tensors
  std::vector<TensorView> parts;  // rows one after the other
  PackedMatrix* packed = nullptr;

  MatrixSource source() const { return {parts, packed->dtype}; }
};

// The packed matrices of one model in a file, byte for byte as the kernel table holds them, to be mapped and
// used where they are. The file begins with a description of all that its bytes were made from: kernel table,
// stamps of the model's files, names, types and layout of every matrix. It counts only if it begins with
// exactly the description that is expected and is exactly as long, so that nothing in it is parsed. Beyond
// that one strip of every matrix is packed again and compared, which tells engines that pack otherwise apart.
class PackedCache {
 public:
  // Jobs have their layouts; they, `file` and `kernels` must outlive the cache.
  PackedCache(const std::filesystem::path& folder, const ModelFile& file, const KernelTable& kernels,
              std::span<const PackingJob> jobs);

  const std::filesystem::path& path() const { return path_; }

  // nullopt: no such file, or (said in the log) one that does not fit.
  std::optional<MappedFile> open(ThreadPool& pool) const;
  // Bytes of job `i` in an opened file.
  std::span<const std::byte> bytes(const MappedFile& mapped, size_t i) const;

  // Writes what the jobs have packed. Errors: those of the file system; another process is writing it.
  Status write() const;

 private:
  bool fits(const MappedFile& mapped, ThreadPool& pool) const;
  bool panel_fits(const MappedFile& mapped, size_t i) const;

  const ModelFile& file_;
  const KernelTable& kernels_;
  std::span<const PackingJob> jobs_;
  std::string description_;  // padded to whole pages
  std::vector<size_t> offsets_;
  size_t size_ = 0;
  std::filesystem::path path_;
};

}  // namespace outrider
