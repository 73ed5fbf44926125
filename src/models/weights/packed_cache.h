// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "formats/model_file.h"
#include "kernels/kernel_table.h"
#include "outrider/result.h"
#include "platform/durable_file.h"
#include "platform/mapped_file.h"

namespace outrider {

// A matrix to be packed from a model file into the layout of a kernel table.
struct PackingJob {
  std::string names;              // names of its tensors
  std::vector<TensorView> parts;  // their rows follow one another in the matrix
  PackedMatrix* packed = nullptr;
  size_t offset = 0;  // in the memory of all matrices

  MatrixSource source() const { return {parts, packed->dtype}; }
};

// The packed matrices of one model in a file, byte for byte as the kernel table holds them, to be mapped and
// used in place. The file begins with a description of all that its bytes depend on: kernel table, stamps of
// the model's files, names, types and layout of every matrix. It is valid only if it begins with exactly the
// expected description and has exactly the expected size, so nothing in it is parsed. In addition one panel
// of every matrix is packed again and compared, which detects engines that pack in another way.
class PackedCache {
 public:
  // Precondition: the layouts of the jobs are set. Jobs, `file` and `kernels` must outlive the cache.
  PackedCache(const std::filesystem::path& folder, const ModelFile& file, const KernelTable& kernels,
              std::span<const PackingJob> jobs);

  const std::filesystem::path& path() const { return path_; }

  // nullopt where there is no such file, or one that does not match, which the log reports.
  std::optional<MappedFile> open(ThreadPool& pool) const { return open(pool, /*loads_pages=*/true); }
  // Whether open() would succeed; few of the file's pages are read.
  bool exists(ThreadPool& pool) const { return open(pool, /*loads_pages=*/false).has_value(); }
  // Where the bytes of job `i` begin in the file, a whole page.
  size_t offset(size_t i) const { return offsets_[i]; }
  // Where the bytes of the next job begin, or the file ends.
  size_t end(size_t i) const { return i + 1 < offsets_.size() ? offsets_[i + 1] : size_; }
  // The bytes of job `i` in an opened file.
  std::span<const std::byte> bytes(const MappedFile& mapped, size_t i) const;

  // Writes the matrices that the jobs have packed. Errors: errors of the file system; another process is
  // writing; the model was changed only just now.
  Status write() const;
  // Packs each matrix just before it is written, and gives its memory back at once. Errors also: errors of
  // `pack`.
  Status write(const std::function<Status(const PackingJob&)>& pack) const;

 private:
  std::optional<MappedFile> open(ThreadPool& pool, bool loads_pages) const;
  Status check_stamps() const;
  Status write_matrix(const PackingJob& job, const ByteSink& sink) const;
  bool fits(const MappedFile& mapped, ThreadPool& pool, bool loads_pages) const;
  bool panel_fits(const MappedFile& mapped, size_t i) const;
  void drop_panel(const MappedFile& mapped, size_t i, bool keeps_packed) const;

  const ModelFile& file_;
  const KernelTable& kernels_;
  std::span<const PackingJob> jobs_;
  std::string description_;  // padded to whole pages
  std::vector<size_t> offsets_;
  size_t size_ = 0;
  std::filesystem::path path_;
};

}  // namespace outrider
