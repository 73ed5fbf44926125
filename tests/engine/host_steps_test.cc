// SPDX-License-Identifier: Apache-2.0
// A step of this machine orders two lists from the device that has the target, a pass and choices, and reads
// tokens in place of logits.
#include <gtest/gtest.h>

#include <bit>
#include <set>

#include "device/emulated_device.h"
#include "formats/model_file.h"
#include "kv/kv_cache.h"
#include "models/backend/device/make_backends.h"
#include "open/device_placement.h"
#include "tests/lossless/lossless.h"

namespace outrider {
namespace {

std::unique_ptr<Engine> open_on_device() {
  EngineOptions options;
  options.model = default_target();
  options.device = ComputeDevice::kEmulated;
  options.device_steps = 0;
  options.threads = 1;
  options.context = 256;
  options.max_batch = 1;
  options.speculation.decoding_type = Method::kNGram;
  options.speculation.max_draft_len = 7;
  return open_engine(options);
}

// Steps after the first one with as many rows, up to a power of two.
void expect_few_orders(const SamplingParams& sampling) {
  const auto engine = open_on_device();
  ASSERT_TRUE(engine->status().device.has_value());
  Request request{.prompt = engine->tokenize("one two three one two three one two three one two")};
  request.max_tokens = 40;
  request.ignore_eos = true;
  request.sampling = sampling;
  ASSERT_TRUE(engine->submit(request).ok());
  std::set<int64_t> seen;
  int64_t steps = 0, rows = 0;
  for (bool goes_on = true; goes_on;) {
    const EngineStatus before = engine->status();
    goes_on = engine->step();
    const EngineStatus after = engine->status();
    const int64_t of_step = after.rows - before.rows;
    if (of_step == 0) continue;
    if (seen.insert(static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(of_step)))).second) continue;
    const DeviceOrders orders = *after.device - *before.device;
    EXPECT_EQ(orders.launches, 0) << of_step << " rows";
    EXPECT_EQ(orders.lists, 2) << of_step << " rows";
    EXPECT_EQ(orders.allocations, 0) << of_step << " rows";
    EXPECT_EQ(orders.bytes_from, 4 * of_step) << of_step << " rows";
    // Builds that poison the cache write its entries, too.
    if (!KvOptions().poison) {
      EXPECT_LE(orders.bytes_to, 64 << 10) << of_step << " rows";
    }
    ++steps;
    rows += of_step;
  }
  EXPECT_GT(steps, 5);
  EXPECT_GT(rows, steps);  // there were drafts
}

TEST(HostSteps, OrderTwoListsAndReadTokens) {
  if (!select_device_kernels().ok())
    GTEST_SKIP() << "this machine has no table with the arithmetic of devices";
  expect_few_orders({});
  SamplingParams sampling;
  sampling.temperature = 0.8;
  sampling.seed = 3;
  expect_few_orders(sampling);
}

// The target takes as much of a device as `inspect` says.
TEST(HostSteps, TakeTheMemoryThatIsPlanned) {
  if (!select_device_kernels().ok())
    GTEST_SKIP() << "this machine has no table with the arithmetic of devices";
  EngineOptions options;
  options.model = default_target();
  options.device = ComputeDevice::kEmulated;
  options.threads = 1;
  options.context = 256;
  options.max_batch = 4;
  options.kv_pages = options.context / options.page_size + 5;  // of one sequence and its drafts
  options.speculation.decoding_type = Method::kNGram;
  const auto file = open_model(options.model);
  ASSERT_TRUE(file.ok());
  const int64_t planned = device_needs(options, *file).bytes();
  const auto& device = dynamic_cast<const EmulatedDevice&>(emulated_device(0));
  const int64_t before = device.allocated_bytes();
  const auto engine = open_engine(options);
  for (const char* text : {"one two three one two three", "red green blue red green blue red"}) {
    Request request{.prompt = engine->tokenize(text)};
    request.max_tokens = 60;
    ASSERT_TRUE(engine->submit(request).ok());
  }
  while (engine->step()) {
  }
  const int64_t taken = device.allocated_bytes() - before;
  EXPECT_LE(taken, planned);
  EXPECT_GE(taken, planned * 7 / 10);
}

}  // namespace
}  // namespace outrider
