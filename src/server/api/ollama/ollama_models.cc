// SPDX-License-Identifier: Apache-2.0
#include "server/api/ollama/ollama_models.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <ctime>
#include <vector>

#include "base/fnv1a.h"
#include "base/quote.h"
#include "server/api/answers/answer.h"
#include "server/api/json_writer.h"
#include "server/api/ollama/ollama_request.h"
#include "server/api/requests/fill_in_middle.h"
#include "server/api/tool_calls/thinking.h"

namespace outrider {
namespace {

constexpr std::string_view kSpokenVersion = "0.12.6";

// 64 hexadecimal digits that change with the model.
std::string digest_of(const ServedModel& model) {
  std::string digest;
  std::string seed = system_fingerprint(model);
  for (int i = 0; i < 4; ++i) {
    char hex[17];
    std::snprintf(hex, sizeof hex, "%016llx", static_cast<unsigned long long>(fnv1a(seed)));
    digest += hex;
    seed += digest;
  }
  return digest;
}

// "1.1B", "15.3M"
std::string short_count(int64_t count) {
  const bool is_billions = count >= 1'000'000'000;
  char text[32];
  std::snprintf(text, sizeof text, "%.1f%c", static_cast<double>(count) / (is_billions ? 1e9 : 1e6),
                is_billions ? 'B' : 'M');
  return text;
}

std::string upper_case(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

void write_details(JsonWriter& json, const ServedModel& model) {
  const EngineInfo& info = model.info;
  json.key("details").begin_object().member("parent_model", "");
  json.member("format", std::string_view(info.model_path).ends_with(".gguf") ? "gguf" : "safetensors");
  json.member("family", info.family).member("families", std::vector<std::string>{info.family});
  json.member("parameter_size", short_count(info.parameters));
  json.member("quantization_level", upper_case(info.weights)).end_object();
}

std::vector<std::string_view> capabilities_of(const ServedModel& model) {
  std::vector<std::string_view> capabilities = {"completion"};
  if (model.chat_template != nullptr) capabilities.push_back("tools");
  if (model.chat_template != nullptr && find_thinking_form(model.chat_template->source(), "") != nullptr)
    capabilities.push_back("thinking");
  if (find_middle_marks(*model.tokenizer)) capabilities.push_back("insert");
  return capabilities;
}

// The list of models with the one model, whose object is open.
JsonWriter& begin_listed(JsonWriter& json, const ServedModel& model) {
  json.begin_object().key("models").begin_array().begin_object();
  json.member("name", model.name).member("model", model.name);
  json.member("size", model.info.weight_bytes).member("digest", digest_of(model));
  write_details(json, model);
  return json;
}

}  // namespace

std::string utc_time(int64_t seconds) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm utc{};
  gmtime_r(&time, &utc);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return text;
}

std::string ollama_tags_body(const ServedModel& model) {
  std::string out;
  JsonWriter json(out);
  begin_listed(json, model).member("modified_at", utc_time(model.created));
  json.end_object().end_array().end_object();
  return out;
}

std::string ollama_ps_body(const ServedModel& model) {
  std::string out;
  JsonWriter json(out);
  begin_listed(json, model).member("expires_at", "9999-12-31T23:59:59Z").member("size_vram", 0);
  json.member("context_length", model.context).end_object().end_array().end_object();
  return out;
}

std::string ollama_version_body() {
  std::string out;
  JsonWriter(out)
      .begin_object()
      .member("version", kSpokenVersion)
      .member("outrider", OUTRIDER_VERSION)
      .end_object();
  return out;
}

ApiResult<std::string> ollama_show_body(std::string_view body, const ServedModel& model,
                                        const ApiLimits& limits) {
  OUTRIDER_TRY(const RequestBody parsed, RequestBody::parse(body, limits.json_depth));
  const RequestField root = parsed.root();
  const auto named = root.find("model");
  OUTRIDER_TRY(const RequestField field, named ? ApiResult<RequestField>(*named) : root.at("name"));
  OUTRIDER_TRY(const std::string name, field.string());
  if (!names_model(name, model)) {
    return ApiError{.status = 404,
                    .message = "model " + quote(name) + " not found; this server has " + quote(model.name)};
  }
  std::string out;
  JsonWriter json(out);
  json.begin_object().member("modelfile", "").member("parameters", "").member("license", "");
  json.member("template", model.chat_template == nullptr ? "" : model.chat_template->source());
  write_details(json, model);
  const std::string& family = model.info.family;
  json.key("model_info").begin_object().member("general.architecture", family);
  json.member("general.parameter_count", model.info.parameters);
  json.member(family + ".context_length", model.context)
      .member(family + ".embedding_length", model.hidden_size);
  json.member(family + ".vocab_size", model.vocab_size).end_object();
  json.member("capabilities", capabilities_of(model))
      .member("modified_at", utc_time(model.created))
      .end_object();
  return out;
}

}  // namespace outrider
