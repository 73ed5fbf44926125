// SPDX-License-Identifier: Apache-2.0
// Experts with bytes that are their numbers, in a file.
#include "models/weights/expert_stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <random>
#include <set>
#include <string>

namespace outrider {
namespace {

namespace fs = std::filesystem;

constexpr int kFileLayers = 4;
constexpr int kFileExperts = 6;  // of each layer but the second, which has none
constexpr size_t kExpertBytes = 3 * DirectFile::kBlock;

class ExpertStreamTest : public testing::Test {
 protected:
  ExpertStreamTest() : path_(testing::TempDir() + "outrider_expert_stream_test") { write(); }
  ~ExpertStreamTest() override { fs::remove(path_); }

  void write() const {
    std::ofstream file(path_, std::ios::binary);
    for (int number = 0; number < kFileLayers * kFileExperts; ++number)
      file << std::string(kExpertBytes, static_cast<char>('A' + number));
  }

  std::unique_ptr<ExpertStream> open(int64_t kept) {
    ExpertStream::Experts experts(kFileLayers);
    for (int layer = 0; layer < kFileLayers; ++layer) {
      for (int expert = 0; layer != 1 && expert < kFileExperts; ++expert) {
        PackedMatrix& packed = matrices_[layer][expert];
        packed = {.n = 1, .k = 1, .panel_features = 1, .panel_bytes = kExpertBytes, .data = {}};
        const size_t begin = static_cast<size_t>(layer * kFileExperts + expert) * kExpertBytes;
        experts[static_cast<size_t>(layer)].push_back(
            {.begin = begin, .bytes = kExpertBytes, .matrices = {{.packed = &packed, .offset = 0}}});
      }
    }
    auto stream = ExpertStream::open(path_, std::move(experts));
    EXPECT_TRUE(stream.ok());
    EXPECT_TRUE((*stream)->keep(kept).ok());
    return std::move(stream).value();
  }

  bool holds_itself(int layer, int expert) const {
    const Buffer& data = matrices_[layer][expert].data;
    const auto number = static_cast<std::byte>('A' + layer * kFileExperts + expert);
    return std::all_of(data.data(), data.data() + data.size(),
                       [&](std::byte byte) { return byte == number; });
  }

  // Uses the experts and returns how many were read.
  int64_t use(ExpertStream& stream, int layer, const std::vector<int32_t>& experts) const {
    const int64_t before = stream.bytes_read();
    stream.begin(layer, experts);
    std::multiset<int32_t> seen;
    for (auto ready = stream.next(); !ready.empty(); ready = stream.next()) {
      for (const int32_t number : ready) {
        seen.insert(number);
        EXPECT_TRUE(holds_itself(layer, experts[static_cast<size_t>(number)]));
      }
    }
    EXPECT_EQ(seen.size(), experts.size());
    EXPECT_EQ(std::set(seen.begin(), seen.end()).size(), experts.size());
    return (stream.bytes_read() - before) / static_cast<int64_t>(kExpertBytes);
  }

  fs::path path_;
  PackedMatrix matrices_[kFileLayers][kFileExperts];
};

TEST_F(ExpertStreamTest, EveryExpertComesOnceWithItsOwnBytes) {
  std::mt19937 random(7);
  for (const int64_t kept : {2, 3, 5, 11, 18}) {
    SCOPED_TRACE(kept);
    const auto stream = open(kept);
    for (int turn = 0; turn < 300; ++turn) {
      const int layer = std::array{0, 2, 3}[static_cast<size_t>(turn % 3)];
      std::vector<int32_t> experts;
      for (int32_t expert = 0; expert < kFileExperts; ++expert) {
        if (random() % 2 == 0) experts.push_back(expert);
      }
      const int64_t read = use(*stream, layer, experts);
      EXPECT_LE(read, std::ssize(experts));
      EXPECT_TRUE(kept < 18 || read == 0);
    }
    EXPECT_EQ(stream->rate() == 0, kept == 18);
  }
}

TEST_F(ExpertStreamTest, ExpertsThatAreUsedMostStay) {
  const auto stream = open(8);
  for (int pass = 0; pass < 40; ++pass) {
    for (const int layer : {0, 2, 3}) {
      // Experts 4 and 5 of every layer are used in each pass, and another one in turn.
      const int64_t read = use(*stream, layer, {pass % 4, 4, 5});
      EXPECT_TRUE(pass <= 8 || read <= 1) << "pass " << pass << " layer " << layer;
    }
  }
}

// The last layer's experts give way to each other before experts of layers that come sooner.
TEST_F(ExpertStreamTest, APartOfEqualExpertsStays) {
  const auto stream = open(9);
  int64_t read = 0;
  for (int pass = 0; pass < 20; ++pass) {
    read = 0;
    for (const int layer : {0, 2, 3}) read += use(*stream, layer, {0, 1, 2, 3, 4});
  }
  EXPECT_LE(read, 12);  // of 15
}

TEST_F(ExpertStreamTest, AFailedReadLeavesTheStreamUsable) {
  const auto stream = open(3);
  fs::resize_file(path_, DirectFile::kBlock);
  stream->begin(3, std::vector<int32_t>{0, 3, 5});
  EXPECT_THROW(while (!stream->next().empty()){}, ReadFailure);
  write();
  EXPECT_EQ(use(*stream, 3, {0, 3, 5}), 2);  // expert 0 was in memory
  EXPECT_EQ(use(*stream, 3, {0, 3, 5}), 0);
}

}  // namespace
}  // namespace outrider
