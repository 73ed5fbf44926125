// SPDX-License-Identifier: Apache-2.0
#include "cli/reports/tree_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "cli/reports/trace_log.h"

namespace outrider {
namespace {

constexpr std::string_view kGreen = "32", kRed = "31", kBlue = "34", kGrey = "90";

// Quotes and escapes a text as in JSON, so that it cannot move a terminal's cursor.
std::string quoted(std::string text) {
  constexpr size_t kShown = 40;
  if (text.size() > kShown) text = text.substr(0, kShown) + "...";
  const std::string dumped =
      nlohmann::json(std::move(text)).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  std::string result;
  for (size_t i = 0; i < dumped.size(); ++i) {
    const auto byte = static_cast<unsigned char>(dumped[i]);
    const auto next = i + 1 < dumped.size() ? static_cast<unsigned char>(dumped[i + 1]) : 0;
    if (byte == 0x7F) {
      result += "\\u007f";
    } else if (byte == 0xC2 && next < 0xA0) {  // U+0080 to U+009F are control characters
      result += fmt::format("\\u{:04x}", next);
      ++i;
    } else {
      result += dumped[i];
    }
  }
  return result;
}

// The number of characters of UTF-8 text.
size_t width(std::string_view text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

struct TreeLine {
  std::string left;  // branches, mark and token
  std::string draft, target;
  std::string outcome;
  std::string_view colour;
};

// Drafters without probabilities give 1, which is not shown.
std::string draft_text(double probability) {
  return probability < 1.0 ? fmt::format("q {:.3g}", probability) : std::string();
}

std::string target_text(double probability) {
  return probability == TraceNode::kUnknown ? std::string() : fmt::format("p {:.3g}", probability);
}

std::string_view mark_of(NodeFate fate) {
  if (fate == NodeFate::kAccepted) return "✓";
  return fate == NodeFate::kRejected ? "✗" : "·";
}

std::string_view colour_of(NodeFate fate) {
  if (fate == NodeFate::kAccepted) return kGreen;
  return fate == NodeFate::kRejected ? kRed : kGrey;
}

class TreeLines {
 public:
  TreeLines(const Engine& engine, const StepTrace& trace) : engine_(engine), trace_(trace) {
    last_ = trace_.nodes.empty() ? -1 : 0;
    for (size_t i = 1; i < trace_.nodes.size(); ++i) {
      if (trace_.nodes[i].fate == NodeFate::kAccepted) last_ = static_cast<int>(i);
    }
    if (trace_.nodes.empty()) return;
    lines_.push_back({quoted(token_text(engine_, trace_.nodes[0].token)), "", "", "", ""});
    add_children(0, "");
  }

  const std::vector<TreeLine>& lines() const { return lines_; }

 private:
  // Whether the target added its own token after this node; a sequence may end before it.
  bool has_own_token(int node) const {
    return node == last_ && !trace_.tokens.empty() && trace_.origins.back() != TokenOrigin::kAccepted;
  }

  void add_children(int parent, const std::string& indent) {
    std::vector<int> children;
    for (size_t i = 1; i < trace_.nodes.size(); ++i) {
      if (trace_.nodes[i].parent == parent) children.push_back(static_cast<int>(i));
    }
    const bool own = has_own_token(parent);
    for (const int child : children) {
      const TraceNode& node = trace_.nodes[static_cast<size_t>(child)];
      const bool is_last = child == children.back() && !own;
      lines_.push_back(
          {branch(indent, is_last) + fmt::format("{} {}", mark_of(node.fate), text_of(node.token)),
           draft_text(node.draft_probability), target_text(node.target_probability), outcome_of(node),
           colour_of(node.fate)});
      add_children(child, indent + (is_last ? "   " : "│  "));
    }
    if (!own) return;
    lines_.push_back({branch(indent, true) + "+ " + text_of(trace_.tokens.back()), "",
                      target_text(trace_.probabilities.back()),
                      std::string(origin_name(trace_.origins.back())), kBlue});
  }

  static std::string branch(const std::string& indent, bool is_last) {
    return indent + (is_last ? "└─ " : "├─ ");
  }
  std::string text_of(TokenId token) const { return quoted(token_text(engine_, token)); }

  // The fate of the node, and its drafter if there are several.
  std::string outcome_of(const TraceNode& node) const {
    const std::string_view cause = cause_name(node.cause);
    std::string text(cause.empty() ? fate_name(node.fate) : cause);
    const std::vector<std::string>& sources = engine_.info().sources;
    std::string names;
    for (size_t i = 0; i < sources.size() && sources.size() > 1; ++i) {
      if ((node.sources >> i & 1) != 0) names += (names.empty() ? "" : ", ") + sources[i];
    }
    return names.empty() ? text : text + " (" + names + ")";
  }

  const Engine& engine_;
  const StepTrace& trace_;
  int last_;  // node of the last accepted draft
  std::vector<TreeLine> lines_;
};

std::string summary(const StepTrace& trace) {
  const auto drafted = trace.nodes.empty() ? 0 : trace.nodes.size() - 1;
  const auto accepted = std::count(trace.origins.begin(), trace.origins.end(), TokenOrigin::kAccepted);
  std::string text = fmt::format("step {}: ", trace.step + 1);
  if (trace.prompt_rows > 0) text += fmt::format("{} tokens of the prompt, ", trace.prompt_rows);
  text += fmt::format(
      "{} committed, {} of {} drafted accepted; {} tokens before, draft {:.2f} ms, verify {:.2f} ms, "
      "other {:.2f} ms",
      trace.tokens.size(), accepted, drafted, trace.context, trace.draft_ms, trace.verify_ms, trace.other_ms);
  if (trace.draft_failed) text += "; the drafter failed";
  if (trace.is_predicted) text += "; drafted from the prediction";
  return text + "\n";
}

}  // namespace

std::string tree_view(const Engine& engine, const StepTrace& trace, bool colour) {
  const TreeLines tree(engine, trace);
  size_t left = 0, draft = 0, target = 0;
  for (const TreeLine& line : tree.lines()) {
    left = std::max(left, width(line.left));
    draft = std::max(draft, line.draft.size());
    target = std::max(target, line.target.size());
  }
  std::string text = summary(trace);
  for (const TreeLine& line : tree.lines()) {
    std::string shown = line.left;
    if (!line.outcome.empty()) {
      shown += std::string(left - width(line.left), ' ');
      if (draft > 0) shown += fmt::format("  {:<{}}", line.draft, draft);
      if (target > 0) shown += fmt::format("  {:<{}}", line.target, target);
      shown += "  " + line.outcome;
    }
    text += line.colour.empty() || !colour ? shown : fmt::format("\x1b[{}m{}\x1b[0m", line.colour, shown);
    text += "\n";
  }
  return text;
}

std::string tree_legend() {
  return "✓ accepted  ✗ rejected  · not examined  + the target's own token; q: drafter's probability, p: "
         "target's";
}

}  // namespace outrider
