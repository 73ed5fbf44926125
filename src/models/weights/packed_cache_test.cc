// SPDX-License-Identifier: Apache-2.0
#include "models/weights/packed_cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>

#include "formats/random_model.h"
#include "models/model_test_data.h"
#include "platform/file_descriptor.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_file(const fs::path& path, std::string_view contents) {
  std::ofstream(path, std::ios::binary).write(contents.data(), static_cast<std::streamsize>(contents.size()));
}

class PackedCacheTest : public testing::Test {
 protected:
  PackedCacheTest() : folder_(testing::TempDir() + "outrider_packed_cache_test") { fs::remove_all(folder_); }
  ~PackedCacheTest() override { fs::remove_all(folder_); }

  struct Loaded {
    bool is_mapped = false;
    std::vector<std::vector<float>> logits;
  };
  Loaded load(const fs::path& model, std::string_view kernels = "reference",
              std::optional<DType> weights = {}) {
    const std::unique_ptr<Model> loaded = open(model, kernels, weights);
    return {loaded->maps_weights(), logits(*loaded)};
  }

  std::unique_ptr<Model> open(const fs::path& model, std::string_view kernels = "reference",
                              std::optional<DType> weights = {}) {
    const auto file = open_model(model);
    EXPECT_TRUE(file.ok()) << file.error().message;
    auto loaded = Model::load(
        *file,
        {.kernels = *select_kernels(kernels), .pool = &pool_, .weights = weights, .packed_cache = folder_});
    EXPECT_TRUE(loaded.ok()) << loaded.error().message;
    return std::move(loaded).value();
  }

  static std::vector<std::vector<float>> logits(Model& model) {
    KvShape shape = model.kv_shape();
    shape.page_size = 16;
    shape.page_count = 1;
    KvCache cache(shape);
    KvSequence sequence = cache.open({});
    const std::vector<TokenId> tokens = {3, 1, 4, 1, 5};
    return run_chunk(model, cache, sequence, tokens);
  }

  std::vector<fs::path> cached() const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder_)) files.push_back(entry.path());
    return files;
  }

  // A model of the test's own, old enough for its time stamp to be trusted.
  fs::path copy_model(const std::string& name) {
    const fs::path copy = folder_.string() + "_models";
    fs::remove_all(copy);
    fs::copy(model_data(name), copy / "", fs::copy_options::recursive);
    wait_for_stamps();
    return copy;
  }
  static void wait_for_stamps() { std::this_thread::sleep_for(std::chrono::milliseconds(150)); }

  fs::path folder_;
  ThreadPool pool_{2};
};

TEST_F(PackedCacheTest, SecondStartMapsWhatTheFirstPacked) {
  for (const char* model : {"llama", "llama_tied", "llama.gguf", "qwen2", "llama_rope_linear"}) {
    for (const std::string_view kernels : available_kernels()) {
      for (const auto weights :
           {std::optional<DType>(), std::optional(DType::kQ4_0), std::optional(DType::kI8)}) {
        fs::remove_all(folder_);
        const Loaded first = load(model_data(model), kernels, weights);
        const Loaded second = load(model_data(model), kernels, weights);
        EXPECT_FALSE(first.is_mapped);
        EXPECT_TRUE(second.is_mapped) << model << " " << kernels;
        EXPECT_EQ(second.logits, first.logits) << model << " " << kernels;
      }
    }
  }
}

TEST_F(PackedCacheTest, OneFolderServesModelsTablesAndTypes) {
  const auto load_all = [&](bool is_mapped) {
    for (const std::string_view kernels : available_kernels()) {
      EXPECT_EQ(load(model_data("llama"), kernels).is_mapped, is_mapped);
      EXPECT_EQ(load(model_data("llama"), kernels, DType::kQ8_0).is_mapped, is_mapped);
      EXPECT_EQ(load(model_data("qwen2"), kernels).is_mapped, is_mapped);
    }
  };
  load_all(false);
  load_all(true);
  EXPECT_EQ(cached().size(), 3 * available_kernels().size());
}

TEST_F(PackedCacheTest, ChangedModelIsPackedAgain) {
  const fs::path model = copy_model("llama");
  const fs::path weights = model / "model.safetensors";
  const Loaded before = load(model);
  EXPECT_TRUE(load(model).is_mapped);
  // Size and time of modification stay, as copying tools leave them.
  const auto modified = fs::last_write_time(weights);
  std::string contents = read_file(weights);
  for (size_t i = contents.size() - 4000; i < contents.size(); i += 4) contents[i + 3] ^= '\x80';  // signs
  write_file(weights, contents);
  fs::last_write_time(weights, modified);
  wait_for_stamps();
  const Loaded changed = load(model);
  EXPECT_FALSE(changed.is_mapped);
  EXPECT_NE(changed.logits, before.logits);
  const Loaded again = load(model);
  EXPECT_TRUE(again.is_mapped);
  EXPECT_EQ(again.logits, changed.logits);
  EXPECT_EQ(cached().size(), 1u);
  fs::remove_all(model);
}

TEST_F(PackedCacheTest, APassOverAFileThatChangedEnds) {
  const auto end_pass = [&](const auto& change) {
    fs::remove_all(folder_);
    load(model_data("llama"));
    const std::unique_ptr<Model> model = open(model_data("llama"));
    ASSERT_TRUE(model->maps_weights());
    const auto before = logits(*model);
    wait_for_stamps();
    change(cached().front());
    EXPECT_THROW(logits(*model), ReadFailure);
    EXPECT_THROW(logits(*model), ReadFailure);
    // The next start packs the weights again.
    EXPECT_EQ(load(model_data("llama")).logits, before);
  };
  end_pass([](const fs::path& path) { fs::resize_file(path, 4096); });
  end_pass([](const fs::path& path) { fs::resize_file(path, 0); });
  end_pass([](const fs::path& path) { write_file(path, std::string(fs::file_size(path), '\0')); });
  // Others remove files from the folder while they are mapped.
  fs::remove_all(folder_);
  const Loaded first = load(model_data("llama"));
  const std::unique_ptr<Model> model = open(model_data("llama"));
  fs::remove(cached().front());
  EXPECT_EQ(logits(*model), first.logits);
}

TEST_F(PackedCacheTest, ModelWrittenJustNowIsNotTrustedYet) {
  const fs::path model = copy_model("llama");
  fs::last_write_time(model / "model.safetensors", fs::file_time_type::clock::now());
  EXPECT_FALSE(load(model).is_mapped);
  EXPECT_FALSE(fs::exists(folder_));
  fs::remove_all(model);
}

TEST_F(PackedCacheTest, DamagedFilesAreReplaced) {
  const fs::path model = model_data("llama");
  const Loaded expected = load(model);
  ASSERT_EQ(cached().size(), 1u);
  const fs::path path = cached().front();
  const std::string whole = read_file(path);
  const size_t description = whole.find("\n\n") + 1;
  ASSERT_LT(description, 4096u);
  const auto expect_replaced = [&](const std::string& contents, const std::string& what) {
    write_file(path, contents);
    const Loaded found = load(model);
    EXPECT_FALSE(found.is_mapped) << what;
    EXPECT_EQ(found.logits, expected.logits) << what;
    ASSERT_EQ(read_file(path), whole) << what;
  };
  for (size_t length :
       {size_t{0}, size_t{1}, description, size_t{4096}, whole.size() / 2, whole.size() - 1}) {
    expect_replaced(whole.substr(0, length), "cut to " + std::to_string(length));
  }
  expect_replaced(whole + "x", "longer");
  for (size_t at = 0; at < 4096; at += at < description ? 5 : 500) {
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ 1 << at % 8);
    expect_replaced(flipped, "bit of byte " + std::to_string(at));
  }
  std::string other = whole;
  for (size_t i = 4096; i < other.size(); ++i) other[i] = static_cast<char>(other[i] ^ 0x10);
  expect_replaced(other, "other weights");
  EXPECT_TRUE(load(model).is_mapped);
}

TEST_F(PackedCacheTest, FoldersThatCannotBeWrittenCostNothingButTime) {
  write_file(folder_, "a file in its place");
  const Loaded found = load(model_data("llama"));
  EXPECT_FALSE(found.is_mapped);
  EXPECT_EQ(read_file(folder_), "a file in its place");
  fs::remove(folder_);
  const Loaded packed = load(model_data("llama"));
  EXPECT_EQ(packed.logits, found.logits);
  const fs::path path = cached().front();
  fs::remove(path);
  fs::create_directory(path);  // a folder stands where the file should be
  EXPECT_EQ(load(model_data("llama")).logits, found.logits);
}

TEST_F(PackedCacheTest, WeightsWithoutFileAreNotKept) {
  EXPECT_FALSE(load(shape_path("llama-25m", DType::kQ8_0, 512)).is_mapped);
  EXPECT_FALSE(fs::exists(folder_));
}

TEST_F(PackedCacheTest, FileThatAnotherProcessWritesIsLeftAlone) {
  load(model_data("llama"));
  const fs::path path = cached().front();
  const std::string temporary = path.string() + ".tmp";
  write_file(temporary, "half of it");
  fs::remove(path);
  {
    const FileDescriptor other(::open(temporary.c_str(), O_RDWR));
    ASSERT_EQ(::flock(other.get(), LOCK_EX), 0);
    EXPECT_FALSE(load(model_data("llama")).is_mapped);
    EXPECT_FALSE(fs::exists(path));
    EXPECT_EQ(read_file(temporary), "half of it");
  }
  // The lock of a process that has ended hinders nobody.
  EXPECT_FALSE(load(model_data("llama")).is_mapped);
  EXPECT_TRUE(load(model_data("llama")).is_mapped);
  EXPECT_FALSE(fs::exists(temporary));
}

}  // namespace
}  // namespace outrider
