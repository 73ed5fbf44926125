// SPDX-License-Identifier: Apache-2.0
// The limits of one rendering and the objects it owns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "chat_template/jinja/value.h"

namespace outrider::jinja {

struct Limits {
  int64_t steps = 10'000'000;                 // nodes evaluated and items visited
  size_t allocation = size_t{128} << 20;      // bytes of all strings, lists and dicts together
  size_t max_value_bytes = size_t{16} << 20;  // bytes of one value
  size_t output = size_t{16} << 20;           // bytes
  int depth = 300;                            // nested statements, expressions and macro calls
};

class Runtime {
 public:
  Runtime(const Limits& limits, const std::tm& now) : limits_(limits), now_(now) {}

  const Limits& limits() const { return limits_; }
  const std::tm& now() const { return now_; }

  // Error of both functions: the rendering exceeded a limit.
  Status spend_steps(int64_t count) {
    steps_ += count;
    if (steps_ <= limits_.steps) return {};
    return resource_error("the template runs longer than " + std::to_string(limits_.steps) + " steps");
  }
  // To be called before a value of `bytes` bytes is created. It charges steps as well, because creation takes
  // time.
  Status spend_bytes(size_t bytes) {
    if (bytes > limits_.max_value_bytes || bytes > limits_.allocation - allocated_) {
      return resource_error("the template makes more values than fit in its memory");
    }
    allocated_ += bytes;
    return spend_steps(static_cast<int64_t>(bytes / kBytesPerStep));
  }

  // Enters one level of recursion of the interpreter. On an error no level was entered.
  Status enter() {
    if (depth_ == limits_.depth) {
      return resource_error("the template nests deeper than " + std::to_string(limits_.depth) + " levels");
    }
    OUTRIDER_RETURN_IF_ERROR(spend_steps(1));
    ++depth_;
    return {};
  }
  void leave() { --depth_; }

  Namespace* make_namespace() { return namespaces_.emplace_back(std::make_unique<Namespace>()).get(); }

 private:
  static constexpr size_t kBytesPerStep = 64;

  Limits limits_;
  std::tm now_;
  int64_t steps_ = 0;
  size_t allocated_ = 0;
  int depth_ = 0;
  std::vector<std::unique_ptr<Namespace>> namespaces_;
};

}  // namespace outrider::jinja
