// SPDX-License-Identifier: Apache-2.0
#include "cli/reports/trace_log.h"

#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "config/message_text.h"

namespace outrider {
namespace {

using Json = nlohmann::ordered_json;

// Four digits are enough for a display and keep large traces small.
Json rounded(double value) { return std::strtod(fmt::format("{:.4g}", value).c_str(), nullptr); }

Json probability_json(double probability) {
  return probability == TraceNode::kUnknown ? Json(nullptr) : rounded(probability);
}

// Nodes as columns instead of objects, so that names occur once per tree.
Json nodes_json(const std::vector<TraceNode>& nodes) {
  Json json = {{"tokens", Json::array()}, {"parents", Json::array()}, {"draft", Json::array()},
               {"target", Json::array()}, {"sources", Json::array()}, {"fates", Json::array()},
               {"causes", Json::array()}};
  for (const TraceNode& node : nodes) {
    json["tokens"].push_back(node.token);
    json["parents"].push_back(node.parent);
    json["draft"].push_back(rounded(node.draft_probability));
    json["target"].push_back(probability_json(node.target_probability));
    json["sources"].push_back(node.sources);
    json["fates"].push_back(fate_name(node.fate));
    json["causes"].push_back(cause_name(node.cause));
  }
  return json;
}

// `null`: the processor computes.
Json device_json(const std::optional<DeviceOrders>& orders) {
  if (!orders) return nullptr;
  return {{"lists", orders->lists},
          {"launches", orders->launches},
          {"bytes_to", orders->bytes_to},
          {"bytes_from", orders->bytes_from},
          {"waited_ms", rounded(orders->waited_ms)}};
}

Json step_json(size_t run, const StepTrace& trace) {
  Json committed = {{"tokens", trace.tokens},
                    {"origins", Json::array()},
                    {"target", Json::array()},
                    {"ranks", trace.ranks}};
  for (const TokenOrigin origin : trace.origins) committed["origins"].push_back(origin_name(origin));
  for (const double p : trace.probabilities) committed["target"].push_back(rounded(p));
  return {{"run", run},
          {"step", trace.step},
          {"start_ms", rounded(trace.start_ms)},
          {"draft_ms", rounded(trace.draft_ms)},
          {"verify_ms", rounded(trace.verify_ms)},
          {"other_ms", rounded(trace.other_ms)},
          {"sequences", trace.sequences},
          {"rows", trace.rows},
          {"prompt_rows", trace.prompt_rows},
          {"context", trace.context},
          {"device", device_json(trace.device)},
          {"draft_failed", trace.draft_failed},
          {"predicted", trace.is_predicted},
          {"nodes", nodes_json(trace.nodes)},
          {"committed", std::move(committed)}};
}

}  // namespace

std::string token_text(const Engine& engine, TokenId token) {
  if (token < 0 || token >= engine.info().vocab_size) return fmt::format("<{}>", token);
  // The token is decoded twice in a row, since some tokenizers drop the space at the beginning of a text.
  const std::array<TokenId, 2> twice = {token, token};
  const std::string once = engine.detokenize(std::span(twice).first(1), false);
  return engine.detokenize(twice, false).substr(once.size());
}

void TraceLog::add(const StepTrace& trace) {
  entries_.push_back({runs_.empty() ? 0 : runs_.size() - 1, trace});
  const auto note = [&](TokenId token) {
    if (!token_texts_.contains(token)) token_texts_.emplace(token, token_text(engine_, token));
  };
  for (const TraceNode& node : trace.nodes) note(node.token);
  for (const TokenId token : trace.tokens) note(token);
}

Json TraceLog::json() const {
  const EngineInfo& info = engine_.info();
  const SamplingParams& sampling = settings_.request.sampling;
  Json json = {{"model", info.model_path},
               {"weights", info.weights},
               {"kernels", info.kernels},
               {"device", info.device},
               {"threads", info.threads},
               {"method", snake_name(info.drafter)},
               {"sources", info.sources},
               {"acceptance", acceptance_rule_name(acceptance_rule(settings_.engine))},
               {"temperature", sampling.temperature},
               {"top_k", sampling.top_k},
               {"top_p", sampling.top_p},
               {"min_p", sampling.min_p},
               {"seed", sampling.seed},
               {"runs", runs_},
               {"token_texts", Json::object()},
               {"steps", Json::array()}};
  for (const auto& [token, text] : token_texts_) json["token_texts"][std::to_string(token)] = text;
  for (const auto& [run, trace] : entries_) json["steps"].push_back(step_json(run, trace));
  return json;
}

}  // namespace outrider
