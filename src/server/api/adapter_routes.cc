// SPDX-License-Identifier: Apache-2.0
#include "server/api/adapter_routes.h"

#include <utility>
#include <vector>

#include "server/api/adapter_fields.h"
#include "server/api/json_writer.h"
#include "server/api/served_adapters.h"

namespace outrider {
namespace {

constexpr std::string_view kSuccess = R"({"success":true})";

ApiResult<std::string> member_text(const RequestBody& body, std::string_view key) {
  OUTRIDER_TRY(const RequestField field, body.root().at(key));
  OUTRIDER_TRY(std::string text, field.string());
  if (text.empty()) return field.error("expected a text, found an empty one");
  return text;
}

}  // namespace

std::string adapters_body(const ServedModel& model) {
  std::string out;
  JsonWriter json(out);
  json.begin_array();
  const auto adapters = model.adapters ? model.adapters->list() : std::vector<AdapterInfo>();
  for (size_t id = 0; id < adapters.size(); ++id) {
    const AdapterInfo& adapter = adapters[id];
    json.begin_object().member("id", id).member("name", adapter.name).member("path", adapter.path);
    json.member("scale", adapter.is_default ? adapter.scale : 0.0).member("rank", adapter.rank);
    json.member("matrices", adapter.matrices).member("format", adapter.format);
    json.member("task_name", "").member("prompt_prefix", "").end_object();
  }
  json.end_array();
  return out;
}

ApiResult<std::string> load_adapter_body(std::string_view body, const ServedModel& model,
                                         const ApiLimits& limits) {
  OUTRIDER_TRY(const RequestBody parsed, RequestBody::parse(body, limits.json_depth));
  OUTRIDER_TRY(const std::string name, member_text(parsed, "lora_name"));
  OUTRIDER_TRY(const std::string path, member_text(parsed, "lora_path"));
  if (model.is_named(name)) return field_error("lora_name", "expected another name than the model's own");
  OUTRIDER_RETURN_IF_ERROR(model.adapters->load(name, path));
  return std::string(kSuccess);
}

ApiResult<std::string> unload_adapter_body(std::string_view body, const ServedModel& model,
                                           const ApiLimits& limits) {
  OUTRIDER_TRY(const RequestBody parsed, RequestBody::parse(body, limits.json_depth));
  OUTRIDER_TRY(const std::string name, member_text(parsed, "lora_name"));
  OUTRIDER_RETURN_IF_ERROR(model.adapters->unload(name));
  return std::string(kSuccess);
}

ApiResult<std::string> set_adapters_body(std::string_view body, const ServedModel& model,
                                         const ApiLimits& limits) {
  const std::string object = R"({"adapters":)" + std::string(body) + "}";
  OUTRIDER_TRY(const RequestBody parsed, RequestBody::parse(object, limits.json_depth));
  OUTRIDER_TRY(const RequestField list, parsed.root().at("adapters"));
  OUTRIDER_TRY(const auto items, list.items(kMaxRequestAdapters));
  std::vector<std::pair<size_t, double>> scales;
  for (const RequestField& item : items) {
    OUTRIDER_TRY(const RequestField id, item.at("id"));
    OUTRIDER_TRY(const RequestField scale, item.at("scale"));
    OUTRIDER_TRY(const int64_t index, id.integer(0, 1 << 20));
    OUTRIDER_TRY(const double factor, scale.number(-kMaxAdapterScale, kMaxAdapterScale));
    scales.emplace_back(static_cast<size_t>(index), factor);
  }
  OUTRIDER_RETURN_IF_ERROR(model.adapters->set_scales(scales));
  return std::string(kSuccess);
}

}  // namespace outrider
