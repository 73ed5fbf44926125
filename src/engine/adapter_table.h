// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "kv/kv_cache.h"
#include "models/model.h"
#include "outrider/engine.h"

namespace outrider {

// An adapter in the memory of a model, until nobody holds it.
class HeldAdapter {
 public:
  HeldAdapter(AdapterSet& set, int32_t number, uint64_t fingerprint)
      : number(number), fingerprint(fingerprint), set_(set) {}
  ~HeldAdapter();
  HeldAdapter(const HeldAdapter&) = delete;
  HeldAdapter& operator=(const HeldAdapter&) = delete;

  const int32_t number;        // in the set
  const uint64_t fingerprint;  // AdapterFile's

 private:
  AdapterSet& set_;
};

// The adapters of one request.
struct AdapterUse {
  std::vector<std::shared_ptr<const HeldAdapter>> held;
  std::vector<ScaledAdapter> scaled;  // as passes name them
  // The scope of cached entries, which keeps entries of other adapters apart; `scope` where there are none.
  uint64_t scope_within(uint64_t scope) const;
};

// The adapters of an engine by name. They stay in memory while requests use them, also after their names are
// gone.
class AdapterTable {
 public:
  // Reads an adapter and packs it for the model, which must outlive the table. Errors: see open_adapter();
  // the name is taken; ranks share the model.
  Status load(Model& model, const AdapterSource& source);
  // Error: no such name.
  Status unload(std::string_view name);
  // Changes the factor of an adapter, and whether requests without adapters use it. Error: no such name.
  Status set_default(std::string_view name, double scale, bool is_default);

  const std::vector<AdapterInfo>& infos() const { return infos_; }
  // Error: an unknown name; the message lists the names.
  Result<AdapterUse> use_of(const Request& request) const;

 private:
  Result<size_t> find(std::string_view name) const;

  std::vector<AdapterInfo> infos_;
  std::vector<std::shared_ptr<const HeldAdapter>> held_;  // [infos_]
};

}  // namespace outrider
