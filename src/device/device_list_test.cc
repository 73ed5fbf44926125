// SPDX-License-Identifier: Apache-2.0
// Lists on devices against a slow reference: random ones, with loops in loops.
#include "device/device_list.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <random>
#include <thread>

#include "device/compared_device.h"
#include "device/cuda_device.h"
#include "device/emulated_device.h"
#include "device/fake_cuda_driver.h"

namespace outrider {
namespace {

constexpr int kWords = 16;

struct AddProductArgs {
  int* to;
  const int* from;
  int number;
};

// to += from * number
std::string add_product(const DeviceKernel&, const void* args, const LaunchShape&, const EmulationOptions&) {
  const auto& add = *static_cast<const AddProductArgs*>(args);
  *add.to = static_cast<int>(static_cast<unsigned>(*add.to) +
                             static_cast<unsigned>(*add.from) * static_cast<unsigned>(add.number));
  return "";
}
constexpr DeviceKernel kAddProduct{"AddProduct", sizeof(AddProductArgs), add_product};

// The devices of the tests; all of them emulate.
struct Devices {
  Devices() {
    FoundCuda found = find_cuda_device(fake_cuda_driver(), kImages, 13000);
    fake_cuda().kernel = [](std::string_view name) { return name == "AddProduct" ? &kAddProduct : nullptr; };
    cuda = std::move(found.device);
  }
  std::vector<Device*> all() { return {&emulated, cuda.get(), &compared}; }

  static constexpr char kCode[] = "sm_90";
  static inline const std::vector<CudaImage> kImages = {{.major = 9, .code = kCode}};
  EmulatedDevice emulated{{}};
  std::unique_ptr<CudaDevice> cuda;
  ComparedDevice compared{emulated};
};

// Words on a device, and functions that name them.
class Words {
 public:
  explicit Words(Device& device) : device_(device), memory_(device, kWords * 4) {}
  DeviceAddress at(int word) const { return memory_.address() + static_cast<DeviceAddress>(4 * word); }
  void add(DeviceList& list, int to, int from, int number) const {
    const AddProductArgs args{reinterpret_cast<int*>(at(to)), reinterpret_cast<const int*>(at(from)), number};
    list.launch(kAddProduct, &args, {});
  }
  void write(const std::vector<int>& words) { device_.upload(std::as_bytes(std::span(words)), at(0)); }
  std::vector<int> read() {
    std::vector<int> words(kWords);
    device_.download(at(0), std::as_writable_bytes(std::span(words)));
    return words;
  }
  std::vector<int> after(DeviceList list, const std::vector<int>& before) {
    write(before);
    auto loaded = device_.load(std::move(list));
    EXPECT_TRUE(loaded.ok());
    (*loaded)->run();
    return read();
  }

 private:
  Device& device_;
  DeviceBuffer memory_;
};

using Step = std::function<void(std::vector<int>&)>;

// A random list for words, and the same as functions of a vector. Words 0 to 3 count the rounds of loops of
// that depth; the last one is -1, for counting down.
struct RandomList {
  DeviceList list;
  std::vector<Step> steps;

  RandomList(std::mt19937& random, const Words& words, int depth) {
    const auto below = [&](int end) { return static_cast<int>(random() % static_cast<unsigned>(end)); };
    const auto any = [&] { return 4 + below(kWords - 5); };
    for (int i = 0; i < 5; ++i) {
      const int to = any(), from = any(), number = below(9) - 4;
      switch (below(depth < 3 ? 4 : 3)) {
        case 0:
          words.add(list, to, from, number);
          steps.push_back([=](auto& w) { add(w, to, from, number); });
          break;
        case 1:
          list.copy(words.at(from), words.at(to), 4);
          steps.push_back([=](auto& w) { w[to] = w[from]; });
          break;
        case 2:
          list.fill(words.at(to), std::byte{3}, 4);
          steps.push_back([=](auto& w) { w[to] = 0x03030303; });
          break;
        default:
          add_loop(random, words, depth, below(4));
      }
    }
  }

  static void add(std::vector<int>& w, int to, int from, int number) {
    w[to] = static_cast<int>(static_cast<unsigned>(w[to]) +
                             static_cast<unsigned>(w[from]) * static_cast<unsigned>(number));
  }

  // The counter becomes `rounds`, and each round takes one away; the limit may come first.
  void add_loop(std::mt19937& random, const Words& words, int depth, int rounds) {
    const int limit = 1 + static_cast<int>(random() % 4);
    list.fill(words.at(depth), std::byte{0}, 4);
    words.add(list, depth, kWords - 1, -rounds);
    RandomList body(random, words, depth + 1);
    words.add(body.list, depth, kWords - 1, 1);
    list.repeat(words.at(depth), limit, body.list);
    steps.push_back([=, inner = body.steps](auto& w) {
      w[depth] = rounds;
      for (int round = 0; round < limit && w[depth] != 0; ++round) {
        for (const Step& step : inner) step(w);
        --w[depth];
      }
    });
  }
};

TEST(DeviceList, RandomListsEqualTheReference) {
  Devices devices;
  for (Device* device : devices.all()) {
    std::mt19937 random(1);
    Words words(*device);
    for (int turn = 0; turn < 200; ++turn) {
      const RandomList made(random, words, 0);
      std::vector<int> expected(kWords);
      for (int& word : expected) word = static_cast<int>(random() % 100);
      expected.back() = -1;
      const std::vector<int> before = expected;
      for (const Step& step : made.steps) step(expected);
      ASSERT_EQ(words.after(made.list, before), expected) << device->name() << ", turn " << turn;
    }
  }
  EXPECT_EQ(fake_cuda().graphs, 0);  // all are destroyed
}

TEST(DeviceList, ARunFollowsTheCallsBeforeItAndPrecedesLaterOnes) {
  Devices devices;
  for (Device* device : devices.all()) {
    Words words(*device);
    DeviceList list;
    words.add(list, 4, 5, 1);
    const auto loaded = device->load(list);
    words.write({0, 0, 0, 0, 10, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
    for (int i = 0; i < 3; ++i) (*loaded)->run();
    device->copy(words.at(4), words.at(5), 4);
    (*loaded)->run();
    EXPECT_EQ(words.read()[4], 26) << device->name();
  }
}

// A list with loops stays as it was on a GPU, where conditions belong to graphs.
TEST(DeviceList, ListsOfTheSameEntriesTakeOtherPlacesAndNumbers) {
  Devices devices;
  for (Device* device : devices.all()) {
    Words words(*device);
    DeviceList first, second, longer, loop;
    words.add(first, 4, 5, 1);
    words.add(second, 6, 5, 2);
    words.add(longer, 4, 5, 1);
    longer.copy(words.at(4), words.at(7), 4);
    loop.repeat(words.at(0), 1, first);
    const auto loaded = device->load(first);
    words.write({0, 0, 0, 0, 10, 3, 20, 0, 0, 0, 0, 0, 0, 0, 0, 0});
    (*loaded)->run();
    EXPECT_TRUE((*loaded)->update(second)) << device->name();
    (*loaded)->run();
    EXPECT_EQ(words.read(), (std::vector<int>{0, 0, 0, 0, 13, 3, 26, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
    if (device != devices.cuda.get()) continue;
    EXPECT_FALSE((*loaded)->update(longer));
    EXPECT_FALSE((*loaded)->update(loop));
    (*loaded)->run();
    EXPECT_EQ(words.read()[6], 32);
    EXPECT_EQ(fake_cuda().updated_graphs, 1);
  }
  EXPECT_EQ(fake_cuda().graphs, 0);
}

// One launch within a list is none of the host's.
TEST(DeviceList, DevicesCountWhatTheHostOrders) {
  Devices devices;
  for (Device* device : devices.all()) {
    Words words(*device);
    DeviceList list;
    words.add(list, 4, 5, 1);
    words.add(list, 5, 4, 1);
    const auto loaded = device->load(list);
    const DeviceCounts before = device->counts();
    words.write(std::vector<int>(kWords));
    (*loaded)->run();
    const AddProductArgs args{reinterpret_cast<int*>(words.at(4)), reinterpret_cast<const int*>(words.at(5)),
                              1};
    for (int i = 0; i < 3; ++i) device->launch(kAddProduct, &args, {});
    words.read();
    const DeviceBuffer more(*device, 8);
    const DeviceCounts counts = device->counts() - before;
    EXPECT_EQ(counts.launches, 3) << device->name();
    EXPECT_EQ(counts.lists, 1) << device->name();
    EXPECT_EQ(counts.uploaded_bytes, kWords * 4) << device->name();
    EXPECT_EQ(counts.downloaded_bytes, kWords * 4) << device->name();
    EXPECT_EQ(counts.allocations, 1) << device->name();
  }
}

TEST(DeviceList, DevicesCountWhatMayWrite) {
  Devices devices;
  for (Device* device : devices.all()) {
    Words words(*device);
    DeviceList list;
    words.add(list, 4, 5, 1);
    const auto loaded = device->load(list);
    const AddProductArgs args{reinterpret_cast<int*>(words.at(4)), reinterpret_cast<const int*>(words.at(5)),
                              1};
    const std::function<void()> writing[] = {[&] { words.write(std::vector<int>(kWords)); },
                                             [&] { (*loaded)->run(); },
                                             [&] { device->launch(kAddProduct, &args, {}); },
                                             [&] { device->copy(words.at(0), words.at(1), 4); },
                                             [&] { device->fill(words.at(2), std::byte{1}, 4); },
                                             [&] { const DeviceBuffer more(*device, 8); }};
    for (const auto& write : writing) {
      const int64_t before = device->writes();
      write();
      EXPECT_GT(device->writes(), before) << device->name() << ", call " << &write - writing;
    }
    const int64_t before = device->writes();
    words.read();
    device->wait();
    EXPECT_EQ(device->writes(), before) << device->name();
  }
}

struct RingArgs {
  std::atomic<int>* ring;  // tokens so far, then a flag that stops
  int* going;
};

std::string count_until_stopped(const DeviceKernel&, const void* args, const LaunchShape&,
                                const EmulationOptions&) {
  const auto& ring = *static_cast<const RingArgs*>(args);
  ++ring.ring[0];
  *ring.going = ring.ring[1] == 0 ? 1 : 0;
  return "";
}
constexpr DeviceKernel kCount{"Count", sizeof(RingArgs), count_until_stopped};

// The loop would run for a long time if the host did not stop it.
TEST(DeviceList, TheHostReadsAndWritesWhileItRuns) {
  EmulatedDevice device({});
  const MappedMemory mapped = device.allocate_mapped(8);
  auto* ring = reinterpret_cast<std::atomic<int>*>(mapped.host);
  const DeviceBuffer going(device, 4);
  device.fill(going.address(), std::byte{1}, 4);
  const RingArgs args{reinterpret_cast<std::atomic<int>*>(mapped.device),
                      reinterpret_cast<int*>(going.address())};
  DeviceList body, list;
  body.launch(kCount, &args, {});
  list.repeat(going.address(), 1 << 30, body);
  const auto loaded = device.load(list);
  (*loaded)->run();
  while (ring[0] < 100) std::this_thread::yield();
  ring[1] = 1;
  int last = 1;
  device.download(going.address(), std::as_writable_bytes(std::span(&last, 1)));
  EXPECT_EQ(last, 0);
  device.release_mapped(mapped);
}

TEST(DeviceList, MappedMemoryIsZeroAndOfBothSides) {
  Devices devices;
  for (Device* device : devices.all()) {
    const MappedMemory mapped = device->allocate_mapped(64);
    int word = 5;
    std::memcpy(mapped.host + 4, &word, 4);
    device->copy(mapped.device + 4, mapped.device + 8, 4);
    device->download(mapped.device + 8, std::as_writable_bytes(std::span(&word, 1)));
    EXPECT_EQ(word, 5);
    std::memcpy(&word, mapped.host + 8, 4);
    EXPECT_EQ(word, 5);
    EXPECT_EQ(mapped.host[63], std::byte{0});
    device->release_mapped(mapped);
  }
}

TEST(DeviceList, OldDriversSayThatTheyHaveNoLoops) {
  CudaDriver driver = fake_cuda_driver();
  driver.create_condition = nullptr;
  const auto device = find_cuda_device(driver, Devices::kImages, 13000).device;
  ASSERT_NE(device, nullptr);
  const auto loaded = device->load({});
  ASSERT_FALSE(loaded.ok());
  EXPECT_EQ(loaded.error().message,
            "NVIDIA's driver has no graphs with loops, which came with CUDA 12.4; update it");
}

// The code of loops is a separate image.
TEST(DeviceList, DriversMayRefuseTheCodeOfLoops) {
  static constexpr char kLoops[] = "loops", kOthers[] = "others";
  CudaDriver driver = fake_cuda_driver();
  driver.load_module = [](CudaDriver::Handle* module, const void* image) {
    return image == kLoops ? 801 : fake::load_module(module, image);
  };
  driver.get_function = [](CudaDriver::Handle* function, CudaDriver::Handle module, const char* name) {
    return name == std::string("outrider_ContinueLoop") ? 500 : fake::get_function(function, module, name);
  };
  std::vector<CudaImage> images = {{.major = 9, .code = kOthers},
                                   {.major = 9, .code = kLoops, .has_loops = true}};
  const auto device = find_cuda_device(driver, images, 13000).device;
  ASSERT_NE(device, nullptr);
  DeviceList list;
  list.repeat(256, 1, {});
  EXPECT_TRUE(device->load(DeviceList()).ok());
  EXPECT_EQ(device->load(list).error().message, "NVIDIA's driver refuses the code of loops; update it");
  images.back().has_loops = false;
  EXPECT_EQ(find_cuda_device(driver, images, 13000).problem,
            "the GPU does not take the kernels: a fake error");
}

TEST(DeviceList, RefusedGraphsAreErrorsAndLeaveNothing) {
  CudaDriver driver = fake_cuda_driver();
  driver.instantiate_graph = [](CudaDriver::Handle*, CudaDriver::Handle, unsigned long long) { return 801; };
  const auto device = find_cuda_device(driver, Devices::kImages, 13000).device;
  EXPECT_EQ(device->load({}).error().message, "the GPU does not take a list of launches: a fake error");
  EXPECT_EQ(fake_cuda().graphs, 0);
}

TEST(DeviceListDeathTest, LoopsNeedAWordAndALimit) {
  DeviceList list;
  EXPECT_DEATH(list.repeat(256, 0, {}), "limit > 0");
  EXPECT_DEATH(list.repeat(257, 1, {}), "word");
  EmulatedDevice device({});
  list.repeat(256, 1, {});  // an address of nothing
  EXPECT_DEATH(
      {
        (*device.load(list))->run();
        device.record_event();
      },
      "");
}

}  // namespace
}  // namespace outrider
