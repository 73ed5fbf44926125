// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "outrider/engine.h"
#include "server/api/request_field.h"

namespace outrider {

// The adapters of a running engine, for the threads that read requests. Thread safe.
class ServedAdapters {
 public:
  // Runs a task on the engine's thread between two steps, and waits for it. Error: the engine has ended.
  using OnEngine = std::function<Status(std::function<Status(Engine&)> task)>;

  // folder: of adapters that clients may load; empty: they may not
  ServedAdapters(std::vector<AdapterInfo> infos, std::filesystem::path folder, OnEngine on_engine);

  std::vector<AdapterInfo> list() const;
  bool has(std::string_view name) const;

  // Loads the adapter at `path` within the folder. Errors: clients may not, a path outside, errors of
  // Engine::load_adapter().
  ApiStatus load(const std::string& name, const std::string& path);
  ApiStatus unload(const std::string& name);
  // Gives adapters, by their places in list(), the scale of requests that choose none; 0: these do not use
  // it. All others get 0.
  ApiStatus set_scales(const std::vector<std::pair<size_t, double>>& scales);

 private:
  ApiStatus change(std::string_view field, const std::function<Status(Engine&)>& task);

  std::filesystem::path folder_;
  OnEngine on_engine_;
  mutable std::mutex mutex_;
  std::vector<AdapterInfo> infos_;
};

}  // namespace outrider
