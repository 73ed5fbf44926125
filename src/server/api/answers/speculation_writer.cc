// SPDX-License-Identifier: Apache-2.0
#include "server/api/answers/speculation_writer.h"

#include "server/api/answers/token_text.h"

namespace outrider {
namespace {

void write_node(JsonWriter& json, const Tokenizer& tokenizer, const TraceNode& node) {
  json.begin_object().member("text", shown_token(tokenizer, node.token)).member("parent", node.parent);
  json.member("fate", fate_name(node.fate)).member("cause", cause_name(node.cause));
  json.member("q", rounded(node.draft_probability)).key("p");
  node.target_probability == TraceNode::kUnknown ? json.null() : json.value(rounded(node.target_probability));
  json.end_object();
}

void write_tree(JsonWriter& json, const Tokenizer& tokenizer, const StepTrace& trace) {
  json.begin_object().member("step", trace.step);
  json.member("draft_ms", rounded(trace.draft_ms)).member("verify_ms", rounded(trace.verify_ms));
  json.member("sequences", trace.sequences).member("rows", trace.rows);
  json.key("nodes").begin_array();
  for (const TraceNode& node : trace.nodes) write_node(json, tokenizer, node);
  json.end_array().end_object();
}

}  // namespace

void SpeculationWriter::write(JsonWriter& json, const ChoiceDelta& delta) {
  json.key("speculation").begin_object().key("tokens").begin_array();
  for (size_t i = 0; i < delta.tokens.size(); ++i) {
    const TokenOrigin origin = i < delta.origins.size() ? delta.origins[i] : TokenOrigin::kPlain;
    json.begin_object().member("text", decoder_.push(delta.tokens[i]));
    json.member("origin", origin_name(origin)).end_object();
  }
  json.end_array();
  // If nothing was drafted, the root is the only node.
  if (delta.trace && delta.trace->nodes.size() > 1) {
    json.key("tree");
    write_tree(json, *tokenizer_, *delta.trace);
  }
  json.end_object();
}

}  // namespace outrider
