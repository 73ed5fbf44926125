// SPDX-License-Identifier: Apache-2.0
#include "cli/reports/draft_view.h"

#include <fmt/format.h>

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

std::string MarkedStream::change_to(TokenOrigin origin) {
  if (origin == current_) return {};
  const std::string_view after = mark_of(current_, colour_).after;
  current_ = origin;
  return fmt::format("{}{}", after, mark_of(origin, colour_).before);
}

std::string MarkedStream::push(const Progress& progress) {
  tokens_.insert(tokens_.end(), progress.tokens.begin(), progress.tokens.end());
  origins_.insert(origins_.end(), progress.origins.begin(), progress.origins.end());
  std::string result;
  for (const char byte : progress.text) {
    // A character that several tokens share has the mark of the first.
    const bool inside_character = (static_cast<unsigned char>(byte) & 0xC0) == 0x80;
    if (!inside_character) {
      while (shown_ >= token_end_ && token_ < tokens_.size()) {
        token_end_ = engine_.detokenize(std::span(tokens_).first(++token_)).size();
      }
      if (token_ > 0) result += change_to(origins_[token_ - 1]);
    }
    result += byte;
    ++shown_;
  }
  return result;
}

std::string MarkedStream::finish() { return change_to(TokenOrigin::kPlain); }

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
