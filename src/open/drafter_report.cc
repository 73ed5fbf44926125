// SPDX-License-Identifier: Apache-2.0
#include "open/drafter_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "config/methods.h"
#include "drafters/draft_target/vocabulary_bridge.h"
#include "drafters/draft_target/vocabulary_match.h"
#include "tokenizer/tokenizer.h"

namespace outrider {
namespace {

DrafterLine found_line(std::string state, const FoundDrafter& drafter) {
  return {.state = std::move(state),
          .method = method_key(drafter.method),
          .name = drafter.name,
          .place = drafter.place,
          .path = drafter.path.string(),
          .reason = std::string(evidence_text(drafter.evidence))};
}

DrafterLine other_line(std::string state, const LeftOutDrafter& drafter) {
  return {.state = std::move(state),
          .method = {},
          .name = drafter.name,
          .place = drafter.place,
          .path = drafter.path.string(),
          .reason = drafter.reason};
}

double percent_of(int64_t part, int64_t whole) {
  return whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

OtherVocabulary compare(const Tokenizer& target, std::shared_ptr<const Tokenizer> draft,
                        const std::filesystem::path& path) {
  OtherVocabulary other{.draft = path,
                        .target_tokens = target.vocab_size(),
                        .draft_tokens = draft->vocab_size(),
                        .shared = 0,
                        .is_shared = {}};
  const VocabularyBridge bridge(target, std::move(draft), target.vocab_size());
  for (const TokenId id : bridge.draft_ids()) other.is_shared.push_back(id >= 0);
  other.shared = std::ranges::count(other.is_shared, true);
  return other;
}

}  // namespace

std::vector<DrafterLine> drafter_lines(const DrafterSearch& search) {
  std::vector<DrafterLine> lines;
  for (const FoundDrafter& drafter : search.found)
    lines.push_back(found_line(lines.empty() ? "uses" : "found", drafter));
  for (const LeftOutDrafter& drafter : search.tried) lines.push_back(other_line("tried", drafter));
  for (const LeftOutDrafter& drafter : search.left_out) lines.push_back(other_line("left out", drafter));
  return lines;
}

std::string text_of(const DrafterLine& line) {
  return fmt::format("{:<8} {}{}{} ({}): {}", line.state, line.method, line.method.empty() ? "" : " ",
                     line.name, line.place, line.reason);
}

std::string search_summary(const OpenedFiles& files) {
  const DrafterSearch& search = files.search;
  if (!method_row(files.names.options.speculation.decoding_type).finds_files) return {};
  const size_t further = search.found.empty() ? 0 : search.found.size() - 1;
  const std::string rest = fmt::format("{} more found, {} tried in vain, {} left out", further,
                                       search.tried.size(), search.left_out.size());
  if (search.found.empty()) {
    if (!files.names.options.speculation.speculative_model.empty()) return {};  // somebody named it
    return fmt::format("drafts from the text alone: no drafter for this target was found ({})", rest);
  }
  const DrafterLine used = found_line("", search.found.front());
  return fmt::format("drafts with {} {} ({}): {}; {}", used.method, used.name, used.place, used.reason, rest);
}

double OtherVocabulary::share_of_text(std::span<const TokenId> tokens) const {
  const auto has = [&](TokenId token) {
    return static_cast<size_t>(token) < is_shared.size() && is_shared[static_cast<size_t>(token)];
  };
  if (tokens.empty()) return 0.0;
  return static_cast<double>(std::ranges::count_if(tokens, has)) / static_cast<double>(tokens.size());
}

std::string OtherVocabulary::text() const {
  return fmt::format(
      "the draft model has another tokenizer: {} of the target's {} tokens are among its {} ({:.1f}%); "
      "drafts "
      "end before every other token, and the text is read again in the draft's tokens",
      shared, target_tokens, draft_tokens, percent_of(shared, target_tokens));
}

Result<std::optional<OtherVocabulary>> other_vocabulary(const OpenedFiles& files) {
  // Models that a search has found have the target's vocabulary.
  if (files.drafts.models.empty() || !files.search.found.empty()) return std::optional<OtherVocabulary>();
  OUTRIDER_TRY(const auto target, Tokenizer::create(files.target.tokenizer));
  for (const ModelFile& model : files.drafts.models) {
    OUTRIDER_TRY(std::shared_ptr<const Tokenizer> draft, Tokenizer::create(model.tokenizer));
    if (!check_same_vocabulary(*target, *draft).ok())
      return std::optional(compare(*target, std::move(draft), model.path));
  }
  return std::optional<OtherVocabulary>();
}

}  // namespace outrider
