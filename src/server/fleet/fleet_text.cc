// SPDX-License-Identifier: Apache-2.0
#include "server/fleet/fleet_text.h"

#include <map>
#include <utility>

#include "server/api/json_writer.h"
#include "server/telemetry/server_metrics.h"

namespace outrider {
namespace {

void write_model(JsonWriter& out, const FleetMember& member, std::string_view name, int64_t created) {
  out.begin_object().member("id", name).member("object", "model").member("created", created);
  out.member("owned_by", "outrider").member("aliases", member.model.aliases);
  out.key("status").begin_object().member("value", member.state_name());
  if (!member.problem.empty()) out.member("problem", member.problem);
  out.end_object().member("pinned", member.model.is_pinned).member("memory", member.bytes());
  out.member("running", member.users).end_object();
}

void write_stats(JsonWriter& out, const FleetMember& member) {
  out.begin_object().member("model", member.model.name).member("state", member.state_name());
  out.member("running", member.users).member("requests", member.requests).member("starts", member.starts);
  out.member("failures", member.failures).member("resident_bytes", member.resident_bytes);
  out.member("process", member.process == nullptr ? 0 : member.process->pid()).end_object();
}

void write_tag(JsonWriter& out, const FleetMember& member) {
  out.begin_object().member("name", member.model.name).member("model", member.model.name);
  out.member("size", member.model.bytes).member("digest", "");
  out.key("details").begin_object().end_object();
  if (member.state == EngineState::kLoaded) out.member("size_vram", 0);
  out.end_object();
}

using Sample = double (*)(const FleetMember& member);

void add_gauge(MetricsText& text, Fleet& fleet, std::string_view name, std::string_view help, Sample sample) {
  text.begin_gauge(name, help);
  for (const MemberPointer& member : fleet.members())
    text.add({{"model", member->model.name}}, sample(*member));
}

void add_counter(MetricsText& text, Fleet& fleet, std::string_view name, std::string_view help,
                 Sample sample) {
  text.begin_counter(name, help);
  for (const MemberPointer& member : fleet.members())
    text.add({{"model", member->model.name}}, sample(*member));
}

// The name in "# HELP name text" or "# TYPE name kind"; empty: the line is a sample.
std::string_view family_of(std::string_view line) {
  if (!line.starts_with("# HELP ") && !line.starts_with("# TYPE ")) return {};
  line.remove_prefix(7);
  return line.substr(0, line.find(' '));
}

}  // namespace

std::string fleet_models_body(Fleet& fleet, int64_t created) {
  std::string body;
  JsonWriter out(body);
  out.begin_object().member("object", "list").key("data").begin_array();
  for (const MemberPointer& member : fleet.members()) {
    if (!member->is_gone) write_model(out, *member, member->model.name, created);
  }
  out.end_array().end_object();
  return body;
}

std::string fleet_model_body(const FleetMember& member, std::string_view name, int64_t created) {
  std::string body;
  JsonWriter out(body);
  write_model(out, member, name, created);
  return body;
}

std::string fleet_tags_body(Fleet& fleet, bool only_loaded) {
  std::string body;
  JsonWriter out(body);
  out.begin_object().key("models").begin_array();
  for (const MemberPointer& member : fleet.members()) {
    if (member->is_gone) continue;
    if (!only_loaded || member->state == EngineState::kLoaded) write_tag(out, *member);
  }
  out.end_array().end_object();
  return body;
}

std::string fleet_member_stats(const FleetMember& member) {
  std::string body;
  JsonWriter out(body);
  write_stats(out, member);
  return body;
}

std::string fleet_stats_body(Fleet& fleet, double uptime) {
  std::string body;
  JsonWriter out(body);
  out.begin_object().member("uptime_s", uptime).member("running", fleet.running());
  out.member("memory", fleet.options().memory).member("used_memory", fleet.used_bytes());
  out.key("models").begin_array();
  for (const MemberPointer& member : fleet.members()) write_stats(out, *member);
  out.end_array().end_object();
  return body;
}

std::string fleet_metrics(Fleet& fleet, const FrontFigures& front) {
  MetricsText text(MetricsText::Labels{});
  text.gauge("outrider:fleet_memory_bytes", "Memory that all engines may have.",
             static_cast<double>(fleet.options().memory));
  text.gauge("outrider:fleet_connections", "Open connections of clients.", front.connections);
  add_gauge(text, fleet, "outrider:fleet_loaded", "1: the model is loaded.",
            [](const FleetMember& member) { return member.state == EngineState::kLoaded ? 1.0 : 0.0; });
  add_gauge(text, fleet, "outrider:fleet_running", "Requests that the engine answers.",
            [](const FleetMember& member) { return static_cast<double>(member.users); });
  add_gauge(text, fleet, "outrider:fleet_resident_bytes", "Resident memory of the engine.",
            [](const FleetMember& member) { return static_cast<double>(member.resident_bytes); });
  add_counter(text, fleet, "outrider:fleet_requests", "Requests that went to the engine.",
              [](const FleetMember& member) { return static_cast<double>(member.requests); });
  add_counter(text, fleet, "outrider:fleet_starts", "Times that the engine was started.",
              [](const FleetMember& member) { return static_cast<double>(member.starts); });
  add_counter(text, fleet, "outrider:fleet_failures", "Times that the engine ended by itself.",
              [](const FleetMember& member) { return static_cast<double>(member.failures); });
  if (front.batches) add_batches(text, *front.batches);
  if (front.audit_lost) add_audit_lost(text, *front.audit_lost);
  return text.text();
}

std::string merged_metrics(std::span<const std::string> texts) {
  std::vector<std::pair<std::string, std::string>> families;  // a head of comments, and samples
  std::map<std::string, size_t, std::less<>> places;
  for (const std::string& text : texts) {
    size_t place = 0;
    bool is_new = false;
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find('\n', begin), text.size() - 1) + 1;
      const std::string_view line(text.data() + begin, end - begin);
      begin = end;
      const std::string_view family = family_of(line);
      if (!family.empty() && line.starts_with("# HELP ")) {
        const auto [found, is_added] = places.try_emplace(std::string(family), families.size());
        place = found->second;
        is_new = is_added;
        if (is_new) families.emplace_back();
      }
      if (families.empty()) continue;
      if (family.empty()) families[place].second += line;
      if (!family.empty() && is_new) families[place].first += line;
    }
  }
  std::string merged;
  for (const auto& [head, samples] : families) merged += head + samples;
  return merged;
}

}  // namespace outrider
