// SPDX-License-Identifier: Apache-2.0
#include "engine/adapter_table.h"

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "base/counter_rng.h"
#include "base/quote.h"
#include "formats/adapters/adapter_file.h"
#include "models/blocks/low_rank/adapter_set.h"

namespace outrider {

HeldAdapter::~HeldAdapter() { set_.remove(number); }

uint64_t AdapterUse::scope_within(uint64_t scope) const {
  for (size_t i = 0; i < held.size(); ++i) {
    scope = mix64(scope ^ mix64(held[i]->fingerprint));
    scope = mix64(scope ^ std::bit_cast<uint32_t>(scaled[i].factor));
  }
  return scope;
}

Status AdapterTable::load(Model& model, const AdapterSource& source) {
  AdapterSet* const set = model.adapters();
  if (set == nullptr) {
    return usage_error(
        "adapters need a model that one rank has whole; leave out --tensor-parallel and "
        "--pipeline-parallel, or --lora");
  }
  if (source.name.empty()) return usage_error("an adapter must have a name, found none");
  if (find(source.name).ok())
    return usage_error("the name of the adapter " + quote(source.name) + " is taken");
  OUTRIDER_TRY(const AdapterFile file, open_adapter(source.path, model.config()));
  OUTRIDER_TRY(const int32_t number, set->add(file));
  held_.push_back(std::make_shared<HeldAdapter>(*set, number, file.fingerprint));
  infos_.push_back({.name = source.name,
                    .path = source.path.string(),
                    .format = file.format,
                    .rank = file.rank,
                    .matrices = std::ssize(file.updates),
                    .scale = source.scale,
                    .is_default = source.is_default});
  return {};
}

Result<size_t> AdapterTable::find(std::string_view name) const {
  std::string names;
  for (size_t i = 0; i < infos_.size(); ++i) {
    if (infos_[i].name == name) return i;
    names += (i == 0 ? "" : ", ") + infos_[i].name;
  }
  return input_error("no adapter " + quote(name) +
                     (names.empty() ? "; none is loaded" : "; loaded are " + names));
}

Status AdapterTable::unload(std::string_view name) {
  OUTRIDER_TRY(const size_t index, find(name));
  infos_.erase(infos_.begin() + static_cast<ptrdiff_t>(index));
  held_.erase(held_.begin() + static_cast<ptrdiff_t>(index));
  return {};
}

Status AdapterTable::set_default(std::string_view name, double scale, bool is_default) {
  OUTRIDER_TRY(const size_t index, find(name));
  infos_[index].scale = scale;
  infos_[index].is_default = is_default;
  return {};
}

Result<AdapterUse> AdapterTable::use_of(const Request& request) const {
  AdapterUse use;
  const auto add = [&](size_t index, double scale) {
    if (scale == 0) return;
    use.held.push_back(held_[index]);
    use.scaled.push_back({held_[index]->number, static_cast<float>(scale)});
  };
  if (request.adapters) {
    for (const RequestAdapter& adapter : *request.adapters) {
      OUTRIDER_TRY(const size_t index, find(adapter.name));
      add(index, adapter.scale.value_or(infos_[index].scale));
    }
  } else {
    for (size_t i = 0; i < infos_.size(); ++i) {
      if (infos_[i].is_default) add(i, infos_[i].scale);
    }
  }
  return use;
}

}  // namespace outrider
