// SPDX-License-Identifier: Apache-2.0
#include "server/api/served_adapters.h"

#include <algorithm>
#include <utility>

#include "base/quote.h"

namespace outrider {

namespace fs = std::filesystem;

ServedAdapters::ServedAdapters(std::vector<AdapterInfo> infos, fs::path folder, OnEngine on_engine)
    : folder_(std::move(folder)), on_engine_(std::move(on_engine)), infos_(std::move(infos)) {}

std::vector<AdapterInfo> ServedAdapters::list() const {
  const std::lock_guard lock(mutex_);
  return infos_;
}

bool ServedAdapters::has(std::string_view name) const {
  const std::lock_guard lock(mutex_);
  return std::ranges::find(infos_, name, &AdapterInfo::name) != infos_.end();
}

ApiStatus ServedAdapters::change(std::string_view field, const std::function<Status(Engine&)>& task) {
  const Status changed = on_engine_([&](Engine& engine) {
    const Status done = task(engine);
    const std::lock_guard lock(mutex_);
    infos_ = engine.adapters();
    return done;
  });
  return changed.ok() ? api_ok() : ApiStatus(field_error(field, changed.error().message));
}

ApiStatus ServedAdapters::load(const std::string& name, const std::string& path) {
  if (folder_.empty()) {
    return not_served_error("this server loads no adapters while it runs; start it with --lora-folder DIR");
  }
  std::error_code code;
  const fs::path folder = fs::canonical(folder_, code);
  const fs::path inner = fs::canonical(folder / path, code);
  const bool is_inside = !code && std::ranges::mismatch(folder, inner).in1 == folder.end();
  if (!is_inside) {
    return field_error("lora_path",
                       "expected an adapter within the folder of --lora-folder, found " + quote(path));
  }
  return change("lora_path",
                [&](Engine& engine) { return engine.load_adapter({.name = name, .path = inner}); });
}

ApiStatus ServedAdapters::unload(const std::string& name) {
  if (folder_.empty()) {
    return not_served_error("this server unloads no adapters while it runs; start it with --lora-folder DIR");
  }
  return change("lora_name", [&](Engine& engine) { return engine.unload_adapter(name); });
}

ApiStatus ServedAdapters::set_scales(const std::vector<std::pair<size_t, double>>& scales) {
  return change("id", [&](Engine& engine) -> Status {
    const std::vector<AdapterInfo> adapters = engine.adapters();
    std::vector<double> all(adapters.size(), 0);
    for (const auto& [index, scale] : scales) {
      if (index >= all.size()) return usage_error("no adapter has the number " + std::to_string(index));
      all[index] = scale;
    }
    for (size_t i = 0; i < all.size(); ++i) {
      const double scale = all[i] == 0 ? adapters[i].scale : all[i];
      OUTRIDER_RETURN_IF_ERROR(engine.set_default_adapter(adapters[i].name, scale, all[i] != 0));
    }
    return {};
  });
}

}  // namespace outrider
