// SPDX-License-Identifier: Apache-2.0
// The scratch of attention on a device.
#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "device/emulated_device.h"
#include "models/backend/device/device_ops.h"

namespace outrider {
namespace {

// Rows of random queries over the beginnings of one text.
class DeviceAttentionScratch : public testing::Test {
 protected:
  static constexpr int kLongest = 3000, kPageSize = 16, kRowCount = 7;

  DeviceAttentionScratch() {
    auto& pages = dynamic_cast<DevicePages&>(cache_.storage());
    const int64_t numbers = kv_.page_count * kPageSize * kv_.row_bytes() / int64_t{sizeof(float)};
    upload(pages.keys(0), numbers);
    upload(pages.values(0), numbers);
    upload(qkv_.address(), kRowCount * shape_.qkv_size());
    std::iota(page_list_.begin(), page_list_.end(), 0);
  }
  std::vector<float> attend(std::span<const int> lengths) {
    std::vector<AttentionRow> rows;
    for (const int length : lengths) rows.push_back({page_list_.data(), length, nullptr, 0});
    ops_.attend({.shape = &shape_, .cache = &cache_, .qkv = FloatAddress(qkv_.address())}, rows,
                FloatAddress(y_.address()));
    std::vector<float> y(rows.size() * static_cast<size_t>(shape_.q_size()));
    device_.download(y_.address(), std::as_writable_bytes(std::span(y)));
    return y;
  }
  int64_t launches_of(std::span<const int> lengths) {
    const int64_t before = device_.launches();
    attend(lengths);
    return device_.launches() - before;
  }

  const AttentionShape shape_{.head_count = 4, .kv_head_count = 2, .head_dim = 24, .scale = 0.2F};
  EmulatedDevice device_{{.seed = 5, .checks_races = true}};
  DeviceOps ops_{device_};

 private:
  void upload(DeviceAddress to, int64_t count) {
    std::vector<float> numbers(static_cast<size_t>(count));
    std::normal_distribution<float> normal;
    for (float& number : numbers) number = normal(random_);
    device_.upload(std::as_bytes(std::span(numbers)), to);
  }

  const KvShape kv_{.layer_count = 1,
                    .kv_head_count = 2,
                    .head_dim = 24,
                    .page_size = kPageSize,
                    .page_count = (kLongest + kPageSize - 1) / kPageSize};
  std::mt19937 random_{1};
  KvCache cache_{kv_, {}, std::make_unique<DevicePages>(device_, kv_)};
  DeviceBuffer qkv_{device_, kRowCount* shape_.qkv_size() * int64_t{sizeof(float)}};
  DeviceBuffer y_{device_, kRowCount* shape_.q_size() * int64_t{sizeof(float)}};
  std::vector<int32_t> page_list_ = std::vector<int32_t>(static_cast<size_t>(kv_.page_count));
};

TEST_F(DeviceAttentionScratch, RowsThatTakeTurnsHaveTheSameBits) {
  const int lengths[kRowCount] = {2900, 1, 255, 2999, 257, 1024, 3000};
  const std::vector<float> expected = attend(lengths);
  EXPECT_EQ(launches_of(lengths), 1);
  constexpr int64_t kChunks = 16;
  const int64_t of_row = kChunks * shape_.head_count * (shape_.head_dim + 2);
  for (const auto& [rows, turns] : {std::pair(6, 2), {3, 3}, {2, 4}, {1, 7}, {0, 7}}) {
    ops_.limit_chunk_sums(rows * of_row);
    EXPECT_EQ(attend(lengths), expected) << rows << " rows together";
    EXPECT_EQ(launches_of(lengths), turns) << rows << " rows together";
  }
}

TEST_F(DeviceAttentionScratch, SeldomMovesWhileATextGrows) {
  for (const auto& [length, moves] :
       {std::pair(1, 0), {1000, 0}, {1024, 0}, {1025, 2}, {2048, 2}, {3000, 4}}) {
    attend(std::span(&length, 1));
    EXPECT_EQ(ops_.moves(), moves) << length;
  }
}

}  // namespace
}  // namespace outrider
