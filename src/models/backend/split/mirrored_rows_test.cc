// SPDX-License-Identifier: Apache-2.0
// Random uses of rows at both places, against one list of the numbers that they should have.
#include "models/backend/split/mirrored_rows.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "device/emulated_device.h"

namespace outrider {
namespace {

class MirroredRowsTest : public testing::Test {
 protected:
  static constexpr int64_t kCount = 40;

  MirroredRowsTest() : buffer_(device_, kCount * static_cast<int64_t>(sizeof(float))), rows_(device_) {
    rows_.add(begin(), kCount);
    device_.upload(std::as_bytes(std::span(numbers_)), buffer_.address());
  }

  FloatAddress begin() const { return FloatAddress(buffer_.address()); }
  int64_t draw(int64_t below) { return static_cast<int64_t>(random_() % static_cast<uint32_t>(below)); }

  // Uses some numbers at one place: all are as they should be, and those that change do so there.
  void use(bool on_host, RowUse use) {
    const int64_t first = draw(kCount), count = 1 + draw(kCount - first);
    const FloatAddress place = begin() + first;
    std::vector<float> found(static_cast<size_t>(count));
    float* here = nullptr;
    if (on_host) {
      here = reinterpret_cast<float*>(rows_.use_on_host(place, count, use).address());
      std::copy_n(here, count, found.begin());
    } else {
      rows_.use_on_device(place, count, use);
      device_.download(place.address(), std::as_writable_bytes(std::span(found)));
    }
    const std::span<float> expected(numbers_.data() + first, static_cast<size_t>(count));
    EXPECT_TRUE(use == RowUse::kWrite || std::ranges::equal(found, expected));
    if (use == RowUse::kRead) return;
    for (float& number : expected) {
      if (use == RowUse::kWrite || draw(2) == 0) number = static_cast<float>(draw(1 << 20));
    }
    if (on_host) {
      std::ranges::copy(expected, here);
    } else {
      device_.upload(std::as_bytes(expected), place.address());
    }
    EXPECT_EQ(rows_.is_on_host(place, count), on_host);
  }

  std::mt19937 random_{5};
  EmulatedDevice device_{{}};
  DeviceBuffer buffer_;
  MirroredRows rows_;
  std::vector<float> numbers_ = std::vector<float>(kCount, 3.0F);
};

TEST_F(MirroredRowsTest, NumbersFollowTheirUses) {
  for (int step = 0; step < 20'000 && !HasFailure(); ++step) use(draw(2) == 0, static_cast<RowUse>(draw(3)));
}

TEST_F(MirroredRowsTest, OnlyWhatIsWantedIsCopied) {
  std::ranges::fill(numbers_, 9.0F);
  const FloatAddress tail = begin() + 30;
  auto* here = reinterpret_cast<float*>(rows_.use_on_host(tail, 10, RowUse::kWrite).address());
  std::fill_n(here, 10, 9.0F);
  EXPECT_FALSE(rows_.is_on_host(begin(), 30));
  EXPECT_TRUE(rows_.is_on_host(begin(), 31));
  rows_.use_on_device(begin(), 31, RowUse::kRead);
  EXPECT_FALSE(rows_.is_on_host(begin(), 31));
  EXPECT_TRUE(rows_.is_on_host(begin(), 32));
}

TEST_F(MirroredRowsTest, RowsOfOthersAreOnTheDevice) {
  const DeviceBuffer other(device_, 64);
  const FloatAddress rows(other.address());
  EXPECT_FALSE(rows_.has(rows));
  EXPECT_FALSE(rows_.is_on_host(rows, 16));
  rows_.use_on_device(rows, 16, RowUse::kChange);
  rows_.remove(begin());
  EXPECT_FALSE(rows_.has(begin()));
}

}  // namespace
}  // namespace outrider
