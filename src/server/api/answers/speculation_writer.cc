// SPDX-License-Identifier: Apache-2.0
#include "server/api/answers/speculation_writer.h"

#include "server/api/answers/token_text.h"
#include "server/api/json_text.h"

namespace outrider {
namespace {

void append_node(std::string& out, const Tokenizer& tokenizer, const TraceNode& node) {
  out += R"({"text":)";
  append_json_string(out, shown_token(tokenizer, node.token));
  out += R"(,"parent":)" + std::to_string(node.parent);
  out += R"(,"fate":)";
  append_json_string(out, fate_name(node.fate));
  out += R"(,"cause":)";
  append_json_string(out, cause_name(node.cause));
  out += R"(,"q":)";
  append_json_rounded(out, node.draft_probability);
  out += R"(,"p":)";
  node.target_probability == TraceNode::kUnknown ? void(out += "null")
                                                 : append_json_rounded(out, node.target_probability);
  out += '}';
}

void append_tree(std::string& out, const Tokenizer& tokenizer, const StepTrace& trace) {
  out += R"(,"tree":{"step":)" + std::to_string(trace.step);
  out += R"(,"draft_ms":)";
  append_json_rounded(out, trace.draft_ms);
  out += R"(,"verify_ms":)";
  append_json_rounded(out, trace.verify_ms);
  out += R"(,"sequences":)" + std::to_string(trace.sequences);
  out += R"(,"rows":)" + std::to_string(trace.rows);
  out += R"(,"nodes":[)";
  for (const TraceNode& node : trace.nodes) {
    if (out.back() != '[') out += ',';
    append_node(out, tokenizer, node);
  }
  out += "]}";
}

}  // namespace

void SpeculationWriter::append(std::string& out, const ChoiceDelta& delta) {
  out += R"(,"speculation":{"tokens":[)";
  for (size_t i = 0; i < delta.tokens.size(); ++i) {
    if (i > 0) out += ',';
    out += R"({"text":)";
    append_json_string(out, decoder_.push(delta.tokens[i]));
    out += R"(,"origin":)";
    append_json_string(out, origin_name(i < delta.origins.size() ? delta.origins[i] : TokenOrigin::kPlain));
    out += '}';
  }
  out += ']';
  // If nothing was drafted, the root is the only node.
  if (delta.trace && delta.trace->nodes.size() > 1) append_tree(out, *tokenizer_, *delta.trace);
  out += '}';
}

}  // namespace outrider
