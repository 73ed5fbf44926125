// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/model_file.h"
#include "models/model.h"
#include "models/sharding/shard.h"
#include "models/weights/packed_cache.h"
#include "models/weights/stored_part.h"

namespace outrider {

// How the shards of a layer divide a product.
struct ProductCut {
  std::vector<Range> inputs = {};   // [shards]: inputs that each brings; empty: each has all
  std::vector<Range> outputs = {};  // [shards]: outputs that each computes, for all shards; empty: for itself
  bool only_first = false;          // outputs are only for the first shard
};

// One or more matrices [n_i, k] that read one input; their outputs are side by side, n = sum of n_i.
// Neighbours of equal type are packed as one matrix. A matrix that shards divide has only this shard's rows.
struct Projection {
  // The outputs of one matrix, named as its tensor is without ".weight".
  struct Outputs {
    std::string matrix;
    int64_t count = 0;
  };
  std::string name = {};              // last words of its tensors' names: "q_proj k_proj v_proj"
  std::vector<Outputs> outputs = {};  // in order
  std::vector<PackedMatrix> parts = {};
  std::vector<float> bias = {};  // [n], or empty
  int64_t n = 0;
  int64_t k = 0;
  ProductCut cut = {};

  int64_t parameter_count() const { return n * k + static_cast<int64_t>(bias.size()); }
  int64_t bytes() const;
};

// The memory of a model's matrices: a file of packed weights, or one buffer. Most matrices by themselves are
// too small for huge pages.
struct WeightMemory {
  std::optional<MappedFile> file = {};
  Buffer buffer = {};  // empty where there is a file

  // Error: the file has changed, so that the last pass may not have read the packed weights.
  Status check() const { return file ? file->check() : Status(); }
};

// Matrices that stay in a file of packed weights until they are needed.
struct StoredWeights {
  std::filesystem::path path = {};
  std::vector<StoredPart> parts = {};
};

// Takes tensors out of a model file by name, checks their shapes, converts matrices to ModelOptions::weights,
// and packs them on all workers. It keeps the stored type where the new type's blocks do not divide the rows.
class WeightLoader {
 public:
  // Both must outlive the loader.
  WeightLoader(const ModelFile& file, const ModelOptions& options) : file_(file), options_(options) {}

  struct Part {
    std::string name;  // name of the tensor without ".weight"
    int64_t n = 0;
    std::optional<DType> type = {};               // whatever ModelOptions::weights says
    std::optional<std::vector<Range>> rows = {};  // the rows of this shard; nullopt: all
    bool is_table = false;                        // rows may be looked up, so it never becomes f8

    int64_t row_count() const;  // of `rows`
  };
  // Plans the packing of each part's weight [n, k], and reads its bias [n] if `bias`. `projection` must not
  // move before pack_all() has returned.
  Status plan(const std::vector<Part>& parts, int64_t k, bool bias, Projection& projection);

  // Plans a product that needs the inputs of all shards and gives all shards its outputs. `inputs`: the
  // inputs that each shard brings.
  Status plan_cut(Part part, const std::vector<Range>& inputs, bool bias, Projection& projection);

  // Plans the copy of a weight [n, k], or of some of its rows, as a table of rows, which must not move before
  // pack_all() has returned.
  Status plan_table(Part part, int64_t k, PackedMatrix& table);

  // Appends the weight of a norm or a bias, [size], to `values` as f32.
  Status read_vector(const std::string& tensor_name, int64_t size, std::vector<float>& values) {
    return read_numbers(tensor_name, {size}, values);
  }
  // Appends all numbers of a small tensor.
  Status read_numbers(const std::string& tensor_name, const Shape& shape, std::vector<float>& values);

  // Appends all numbers of a small matrix [rows, columns], column after column.
  Status read_columns(const std::string& tensor_name, int64_t rows, int64_t columns,
                      std::vector<float>& values);

  // Packs what was planned, or finds it packed in ModelOptions::packed_cache. The matrices borrow their data
  // from the returned memory. Error: the first matrix that could not be converted or packed.
  Result<WeightMemory> pack_all();
  // The number of matrices planned so far.
  size_t planned() const { return jobs_.size(); }
  // Packs what was planned into a file of ModelOptions::packed_cache, unless it is there. The matrices
  // planned up to each of `ends` are a part that stays there; later ones are read into memory. Where
  // ModelOptions::plans_only is set, there is no file and nothing is read. Errors also: no such folder,
  // errors of its file system.
  Result<StoredWeights> store_all(std::span<const size_t> ends);
  int64_t packed_bytes() const { return packed_bytes_; }  // sum over all calls
  const ModelPart& part() const { return options_.part; }

 private:
  Result<TensorView> find(const std::string& tensor_name, const Shape& shape) const;
  DType loaded_type(const TensorView& view, const Part& part) const;
  Status read_bias(const Part& part, std::vector<float>& bias);
  using Layout = Result<PackedMatrix> (*)(const MatrixSource& source);
  struct MatrixPlan {
    std::string names = {};
    std::vector<TensorView> parts = {};
    DType type = DType::kF32;
  };
  static void add_rows(const Part& part, const TensorView& view, MatrixPlan& plan);
  Status check_rows(const std::vector<Part>& parts, size_t index, DType type) const;
  Status plan_matrix(MatrixPlan plan, Layout layout, PackedMatrix& packed);
  Status pack(const PackingJob& job) const;
  Status pack_to_file(const PackedCache& cache) const;
  static StoredPart stored_part(const PackedCache& cache, std::span<const PackingJob> jobs, Range range);
  Result<Buffer> pack(const std::vector<PackingJob>& jobs, size_t bytes) const;

  void place(PackedMatrix& packed) const;
  // Runs work(share) for every share of a matrix on all workers. Error: out of memory.
  template <typename Work>
  Status share(Work&& work) const;
  Error no_memory() const;

  const ModelFile& file_;
  const ModelOptions& options_;
  std::vector<PackingJob> jobs_;
  size_t planned_bytes_ = 0;  // of jobs_
  int64_t packed_bytes_ = 0;
};

}  // namespace outrider
