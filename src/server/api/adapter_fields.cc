// SPDX-License-Identifier: Apache-2.0
#include "server/api/adapter_fields.h"

#include <utility>
#include <vector>

#include "base/quote.h"
#include "server/api/served_adapters.h"

namespace outrider {
namespace {

ApiResult<std::string> name_of(const RequestField& item, const std::vector<AdapterInfo>& adapters) {
  if (item.is_string()) return item.string();
  if (const auto name = item.find("name")) return name->string();
  OUTRIDER_TRY(const RequestField id, item.at("id"));
  OUTRIDER_TRY(const int64_t index, id.integer(0, static_cast<int64_t>(adapters.size()) - 1));
  return adapters[static_cast<size_t>(index)].name;
}

}  // namespace

ApiStatus read_model(const RequestField& field, GenerationSpec& spec) {
  OUTRIDER_TRY(const std::string name, field.string());
  if (spec.model->is_named(name)) return api_ok();
  if (spec.model->has_adapter(name)) {
    if (!spec.request.adapters) spec.request.adapters = std::vector<RequestAdapter>{{.name = name}};
    return api_ok();
  }
  ApiError error =
      field.error("expected " + quote(spec.model->name) + ", found " + quote(name), "model_not_found");
  error.status = 404;
  return error;
}

ApiStatus read_adapters(const RequestField& field, GenerationSpec& spec) {
  const std::vector<AdapterInfo> adapters =
      spec.model->adapters ? spec.model->adapters->list() : std::vector<AdapterInfo>();
  OUTRIDER_TRY(const auto items, field.items(kMaxRequestAdapters));
  std::vector<RequestAdapter> wanted;
  for (const RequestField& item : items) {
    if (adapters.empty()) return item.error("expected none, because this server has no adapters");
    RequestAdapter adapter;
    OUTRIDER_TRY(adapter.name, name_of(item, adapters));
    if (!spec.model->has_adapter(adapter.name)) return item.error("no adapter " + quote(adapter.name));
    if (const auto scale = item.is_object() ? item.find("scale") : std::nullopt) {
      OUTRIDER_TRY(adapter.scale, scale->number(-kMaxAdapterScale, kMaxAdapterScale));
    }
    wanted.push_back(std::move(adapter));
  }
  spec.request.adapters = std::move(wanted);
  return api_ok();
}

}  // namespace outrider
