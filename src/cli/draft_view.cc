// SPDX-License-Identifier: Apache-2.0
#include "cli/draft_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string_view>

#include "config/message_text.h"

namespace outrider {
namespace {

struct Mark {
  std::string_view before;
  std::string_view after;
};

Mark mark_of(TokenOrigin origin, bool colour) {
  constexpr std::string_view kReset = "\x1b[0m";
  switch (origin) {
    case TokenOrigin::kAccepted:
      return colour ? Mark{"\x1b[32m", kReset} : Mark{"[", "]"};
    case TokenOrigin::kRecovered:
      return colour ? Mark{"\x1b[31m", kReset} : Mark{"{", "}"};
    case TokenOrigin::kBonus:
      return colour ? Mark{"\x1b[4;34m", kReset} : Mark{"<", ">"};
    case TokenOrigin::kPlain:
      return {};
  }
  return {};
}

std::string marked(std::string_view text, TokenOrigin origin, bool colour) {
  const Mark mark = mark_of(origin, colour);
  return fmt::format("{}{}{}", mark.before, text, mark.after);
}

}  // namespace

std::string marked_text(const Engine& engine, const Completion& completion, bool colour) {
  const std::span<const TokenId> tokens = completion.tokens;
  const std::string whole = engine.detokenize(tokens);
  const size_t end = std::min(whole.size(), completion.text.size());  // a stop string cuts the text
  std::string result;
  size_t begin = 0;
  size_t i = 0;
  while (i < tokens.size()) {
    const TokenOrigin origin = completion.origins[i];
    while (i < tokens.size() && completion.origins[i] == origin) ++i;
    size_t next = i == tokens.size() ? end : std::min(engine.detokenize(tokens.first(i)).size(), end);
    // A character that two tokens share goes with the first of them.
    while (next < end && (static_cast<unsigned char>(whole[next]) & 0xC0) == 0x80) ++next;
    if (next > begin) result += marked(std::string_view(whole).substr(begin, next - begin), origin, colour);
    begin = std::max(begin, next);
  }
  return result;
}

std::string mark_legend(bool colour) {
  return fmt::format("{} {} {} plain", marked("accepted", TokenOrigin::kAccepted, colour),
                     marked("corrected", TokenOrigin::kRecovered, colour),
                     marked("bonus", TokenOrigin::kBonus, colour));
}

std::string statistics_line(const Completion& completion, double tokens_per_second) {
  const SpeculationStats& stats = completion.speculation;
  const double rate = stats.drafted == 0
                          ? 0
                          : 100.0 * static_cast<double>(stats.accepted) / static_cast<double>(stats.drafted);
  const std::string failures =
      stats.draft_failures == 0 ? "" : fmt::format(", {} drafter failures", stats.draft_failures);
  return fmt::format(
      "{}: {} tokens in {} target passes, {:.1f} tok/s; {} of {} drafted accepted ({:.1f}%), "
      "acceptance length {:.2f}, draft {:.0f} ms, verify {:.0f} ms{}",
      snake_name(stats.method), completion.tokens.size(), stats.steps, tokens_per_second, stats.accepted,
      stats.drafted, rate, stats.acceptance_length(), stats.draft_ms, stats.verify_ms, failures);
}

}  // namespace outrider
