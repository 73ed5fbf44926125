// SPDX-License-Identifier: Apache-2.0
#include "models/weights/packed_cache.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <new>
#include <string_view>
#include <utility>

#include "base/counter_rng.h"
#include "base/log.h"

namespace outrider {
namespace {

constexpr size_t kPage = 4096;

size_t whole_pages(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

std::string numbers(std::initializer_list<int64_t> values) {
  std::string text;
  for (const int64_t value : values) text += " " + std::to_string(value);
  return text;
}

std::string description_of(const PackingJob& job) {
  const PackedMatrix& packed = *job.packed;
  std::string text = "matrix " + job.names + " " + std::string(dtype_name(packed.dtype)) +
                     numbers({static_cast<int64_t>(packed.layout), static_cast<int64_t>(packed.inputs),
                              packed.n, packed.k, packed.panel_features, packed.panel_bytes}) +
                     " from";
  for (const TensorView& part : job.parts) text += " " + std::string(dtype_name(part.dtype));
  return text + "\n";
}

std::string hash_text(std::string_view text) {
  uint64_t hash = 0;
  for (const char byte : text) hash = mix64(hash ^ static_cast<unsigned char>(byte));
  char digits[17];
  std::snprintf(digits, sizeof(digits), "%016llx", static_cast<unsigned long long>(hash));
  return digits;
}

// The rows [begin, begin + count) of the job's parts.
std::vector<TensorView> rows_of(const PackingJob& job, int64_t begin, int64_t count) {
  std::vector<TensorView> rows;
  for (const TensorView& part : job.parts) {
    const int64_t first = std::clamp<int64_t>(begin, 0, part.rows());
    const int64_t last = std::clamp<int64_t>(begin + count, 0, part.rows());
    if (first < last) rows.push_back(part.rows_from(first, last - first));
    begin -= part.rows();
  }
  return rows;
}

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

PackedCache::PackedCache(const std::filesystem::path& folder, const ModelFile& file,
                         const KernelTable& kernels, std::span<const PackingJob> jobs)
    : file_(file), kernels_(kernels), jobs_(jobs) {
  description_ = "outrider packed weights 2\nkernels " + std::string(kernels.name) + "\n";
  for (const PackingJob& job : jobs) description_ += description_of(job);
  // The name tells models apart, so that one folder serves many; a model that changed replaces its file.
  const std::filesystem::path& model = file.path;
  const std::string stem = (model.has_filename() ? model : model.parent_path()).stem().string();
  path_ = folder / (stem + "-" + std::string(kernels.name) + "-" + hash_text(description_) + ".packed");
  for (const MappedFile* mapped : file.files) {
    const FileStamp& stamp = mapped->stamp();
    description_ += "file" + numbers({stamp.bytes, stamp.modified, stamp.changed}) + "\n";
  }
  description_.resize(whole_pages(description_.size()), '\n');
  size_ = description_.size();
  for (const PackingJob& job : jobs) {
    offsets_.push_back(size_);
    size_ += whole_pages(static_cast<size_t>(job.packed->bytes()));
  }
}

std::span<const std::byte> PackedCache::bytes(const MappedFile& mapped, size_t i) const {
  return mapped.bytes().subspan(offsets_[i], static_cast<size_t>(jobs_[i].packed->bytes()));
}

std::optional<MappedFile> PackedCache::open(ThreadPool& pool, bool loads_pages) const {
  std::error_code error;
  if (!std::filesystem::exists(path_, error)) return std::nullopt;
  Result<MappedFile> mapped = MappedFile::open(path_);
  if (!mapped.ok()) {
    log_warning(mapped.error().message + "; packing the weights again");
    return std::nullopt;
  }
  if (!fits(*mapped, pool, loads_pages) || !mapped->check().ok()) {
    log_warning(path_.string() +
                " is of another state of the model or of the engine, or damaged; packing the weights again");
    return std::nullopt;
  }
  return std::move(mapped).value();
}

bool PackedCache::fits(const MappedFile& mapped, ThreadPool& pool, bool loads_pages) const {
  if (mapped.bytes().size() != size_) return false;
  if (as_text(mapped.bytes().first(description_.size())) != description_) return false;
  std::atomic<bool> all_fit = true;
  pool.run(16 * pool.size(), [&](Worker worker) {
    const Range bytes = share_of(worker, static_cast<int64_t>(size_), int64_t{2} << 20);
    if (loads_pages) {
      populate_mapped_pages(mapped.bytes().subspan(static_cast<size_t>(bytes.begin),
                                                   static_cast<size_t>(bytes.end - bytes.begin)));
    }
    const Range jobs = share_of(worker, static_cast<int64_t>(jobs_.size()));
    for (int64_t i = jobs.begin; i < jobs.end; ++i) {
      if (!panel_fits(mapped, static_cast<size_t>(i))) all_fit = false;
      drop_panel(mapped, static_cast<size_t>(i), loads_pages);
    }
  });
  return all_fit;
}

// Gives back the pages that panel_fits() read, which are many where there are many matrices. Pages of the
// packed matrix stay if it is about to be used.
void PackedCache::drop_panel(const MappedFile& mapped, size_t i, bool keeps_packed) const {
  for (const TensorView& part : jobs_[i].parts) file_.drop_pages(part);
  if (!keeps_packed) drop_mapped_pages(bytes(mapped, i));
}

bool PackedCache::panel_fits(const MappedFile& mapped, size_t i) const try {
  const PackedMatrix& whole = *jobs_[i].packed;
  const auto panel = static_cast<int64_t>(mix64(i) % static_cast<uint64_t>(whole.panel_count()));
  const int64_t begin = panel * whole.panel_features;
  PackedMatrix alone = {.layout = whole.layout,
                        .inputs = whole.inputs,
                        .dtype = whole.dtype,
                        .n = std::min(whole.panel_features, whole.n - begin),
                        .k = whole.k,
                        .panel_features = whole.panel_features,
                        .panel_bytes = whole.panel_bytes,
                        .data = {}};
  if (!allocate(alone).ok()) return false;
  const std::vector<TensorView> rows = rows_of(jobs_[i], begin, alone.n);
  kernels_.pack({rows, whole.dtype}, alone, Worker{});
  const auto stored = bytes(mapped, i).subspan(static_cast<size_t>(panel * whole.panel_bytes));
  return std::memcmp(stored.data(), alone.data.data(), alone.data.size()) == 0;
} catch (const std::bad_alloc&) {
  return false;
}

Status PackedCache::check_stamps() const {
  for (const MappedFile* mapped : file_.files) {
    if (!mapped->stamp().is_final)
      return io_error("the model was written only just now; the next start will do it");
  }
  return make_directories(path_.parent_path());
}

Status PackedCache::write_matrix(const PackingJob& job, const ByteSink& sink) const {
  static const std::string padding(kPage, '\0');
  const Buffer& data = job.packed->data;
  OUTRIDER_RETURN_IF_ERROR(sink(as_text({data.data(), data.size()})));
  return sink(std::string_view(padding).substr(0, whole_pages(data.size()) - data.size()));
}

Status PackedCache::write() const {
  OUTRIDER_RETURN_IF_ERROR(check_stamps());
  return write_durably(path_, [&](const ByteSink& sink) -> Status {
    OUTRIDER_RETURN_IF_ERROR(sink(description_));
    for (const PackingJob& job : jobs_) OUTRIDER_RETURN_IF_ERROR(write_matrix(job, sink));
    return file_.check_files();
  });
}

Status PackedCache::write(const std::function<Status(const PackingJob&)>& pack) const {
  OUTRIDER_RETURN_IF_ERROR(check_stamps());
  return write_durably(path_, [&](const ByteSink& sink) -> Status {
    OUTRIDER_RETURN_IF_ERROR(sink(description_));
    for (const PackingJob& job : jobs_) {
      OUTRIDER_RETURN_IF_ERROR(pack(job));
      OUTRIDER_RETURN_IF_ERROR(write_matrix(job, sink));
      job.packed->data = Buffer();
    }
    return file_.check_files();
  });
}

}  // namespace outrider
