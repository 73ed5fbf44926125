// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <typeindex>
#include <utility>

namespace outrider {

// Objects that are one of their type.
class SharedObjects {
 public:
  // The object of the type, made of `args` when it is first wanted.
  template <typename Shared, typename... Args>
  Shared& of(Args&&... args) {
    std::shared_ptr<void>& held = held_[std::type_index(typeid(Shared))];
    if (!held) held = std::make_shared<Shared>(std::forward<Args>(args)...);
    return *static_cast<Shared*>(held.get());
  }

 private:
  std::map<std::type_index, std::shared_ptr<void>> held_;
};

}  // namespace outrider
