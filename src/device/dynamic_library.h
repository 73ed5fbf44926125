// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dlfcn.h>

#include <string>

namespace outrider {

// Functions of one library, found one after the other. It stays open.
class DynamicLibrary {
 public:
  explicit DynamicLibrary(const char* name) : handle_(dlopen(name, RTLD_NOW | RTLD_LOCAL)) {}
  bool is_open() const { return handle_ != nullptr; }
  template <typename Function>
  void find(Function& function, const char* name) {
    find_new(function, name);
    if (function == nullptr) missing_ += (missing_.empty() ? "" : ", ") + std::string(name);
  }
  // Finds a function that older versions lack, or null.
  template <typename Function>
  void find_new(Function& function, const char* name) {
    function = reinterpret_cast<Function>(dlsym(handle_, name));
  }
  // Functions that were not found; empty: all were.
  const std::string& missing() const { return missing_; }

 private:
  void* handle_;
  std::string missing_;
};

}  // namespace outrider
