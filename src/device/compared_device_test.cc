// SPDX-License-Identifier: Apache-2.0
#include "device/compared_device.h"

#include <gtest/gtest.h>

#include <limits>
#include <span>
#include <vector>

namespace outrider {
namespace {

struct AddArgs {
  const float* x;
  int64_t count;
  float* y;
};

// y += x, and more at a call in two, if it is told so: the device is called before the emulation.
int mistakes = 0;
std::string add(const DeviceKernel&, const void* args, const LaunchShape&, const EmulationOptions&) {
  const auto& of = *static_cast<const AddArgs*>(args);
  for (int64_t i = 0; i < of.count; ++i) of.y[i] += of.x[i];
  if (mistakes > 0 && mistakes-- % 2 == 0) of.y[1] += 1;
  return "";
}
constexpr DeviceKernel kAdd{"Add", sizeof(AddArgs), add};

class Compared : public testing::Test {
 protected:
  explicit Compared() : x_(device_, 16), y_(device_, 16) {
    put(x_, {1, 2, 3, 4});
    put(y_, {5, 6, 7, std::numeric_limits<float>::quiet_NaN()});
  }
  void put(const DeviceBuffer& to, const std::vector<float>& numbers) {
    device_.upload(std::as_bytes(std::span(numbers)), to.address());
  }
  const ComparedDevice::Comparison& launch() {
    const AddArgs args{reinterpret_cast<const float*>(x_.address()), 4,
                       reinterpret_cast<float*>(y_.address())};
    device_.launch(kAdd, &args, {});
    return device_.comparisons().at("Add");
  }
  std::vector<float> sums() {
    std::vector<float> numbers(3);
    device_.download(y_.address(), std::as_writable_bytes(std::span(numbers)));
    return numbers;
  }

  EmulatedDevice tested_{{}};
  ComparedDevice device_{tested_};
  DeviceBuffer x_, y_;
};

TEST_F(Compared, EqualKernelsDoNotDiffer) {
  EXPECT_EQ(launch().differing, 0);
  EXPECT_EQ(launch().launches, 2);
  EXPECT_EQ(launch().words, 3 * 8);
  EXPECT_EQ(sums(), (std::vector<float>{8, 12, 16}));
}

TEST_F(Compared, AMistakeIsCountedOnce) {
  mistakes = 2;
  EXPECT_EQ(launch().differing, 1);
  EXPECT_EQ(launch().first, "word 1 of 4 is 9.000000, expected 8.000000");
  EXPECT_EQ(launch().differing, 1);  // it goes on with the right number
  EXPECT_EQ(sums(), (std::vector<float>{8, 12, 16}));
}

TEST_F(Compared, MemoryIsGivenBackOnBoth) {
  const int64_t before = tested_.allocated_bytes();
  device_.release(device_.allocate(100));
  EXPECT_EQ(tested_.allocated_bytes(), before);
}

}  // namespace
}  // namespace outrider
