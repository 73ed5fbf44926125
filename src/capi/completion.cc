// SPDX-License-Identifier: Apache-2.0
#include <string_view>

#include "capi/handles.h"
#include "capi/status.h"

using outrider::NodeCause;
using outrider::NodeFate;
using outrider::TokenLogprobs;
using outrider::TokenOrigin;

namespace {

static_assert(static_cast<int>(TokenOrigin::kPlain) == OUTRIDER_ORIGIN_PLAIN);
static_assert(static_cast<int>(TokenOrigin::kAccepted) == OUTRIDER_ORIGIN_ACCEPTED);
static_assert(static_cast<int>(TokenOrigin::kRecovered) == OUTRIDER_ORIGIN_RECOVERED);
static_assert(static_cast<int>(TokenOrigin::kBonus) == OUTRIDER_ORIGIN_BONUS);

// The pointers lead into `completion`.
outrider_statistics statistics_of(const outrider::Completion& completion) {
  const outrider::SpeculationStats& stats = completion.speculation;
  return {.prompt_tokens = completion.prompt_tokens,
          .cached_tokens = completion.cached_tokens,
          .steps = stats.steps,
          .drafts = stats.drafts,
          .drafted = stats.drafted,
          .accepted = stats.accepted,
          .draft_failures = stats.draft_failures,
          .acceptance_length = stats.acceptance_length(),
          .queue_ms = completion.queue_ms,
          .first_token_ms = completion.first_token_ms,
          .prompt_ms = completion.prompt_ms,
          .decode_ms = completion.decode_ms,
          .draft_ms = stats.draft_ms,
          .verify_ms = stats.verify_ms,
          .drafted_per_position = stats.drafted_per_position.data(),
          .accepted_per_position = stats.accepted_per_position.data(),
          .positions = stats.drafted_per_position.size(),
          .accepted_prediction_tokens = completion.accepted_prediction_tokens,
          .rejected_prediction_tokens = completion.rejected_prediction_tokens};
}

// Names are literals, which end with a zero; "" for a number above `last`.
template <typename Enum>
const char* name_of(int number, Enum last, std::string_view (*name)(Enum)) {
  return number < 0 || number > static_cast<int>(last) ? "" : name(static_cast<Enum>(number)).data();
}

}  // namespace

outrider_completion::outrider_completion(const outrider::Completion& finished) : completion(finished) {
  for (const TokenLogprobs& token : completion.logprobs) {
    logprobs.push_back(token.logprob);
    rows.push_back({.begin = ids.size(), .count = token.top.size()});
    for (const auto& [id, logprob] : token.top) {
      ids.push_back(id);
      top.push_back(logprob);
    }
  }
  for (const TokenLogprobs& token : completion.prompt_logprobs) prompt_logprobs.push_back(token.logprob);
  statistics = statistics_of(completion);
}

outrider_completion* outrider_completion_new(const outrider_completion* completion) {
  return outrider::made_by([&] { return new outrider_completion(*completion); });
}

void outrider_completion_free(outrider_completion* completion) { delete completion; }

const char* outrider_completion_text(const outrider_completion* completion, size_t* size) {
  *size = completion->completion.text.size();
  return completion->completion.text.c_str();
}

const int32_t* outrider_completion_tokens(const outrider_completion* completion, size_t* count) {
  *count = completion->completion.tokens.size();
  return completion->completion.tokens.data();
}

const uint8_t* outrider_completion_origins(const outrider_completion* completion, size_t* count) {
  *count = completion->completion.origins.size();
  return reinterpret_cast<const uint8_t*>(completion->completion.origins.data());
}

const char* outrider_completion_finish_reason(const outrider_completion* completion) {
  return finish_reason_name(completion->completion.finish_reason).data();
}

const float* outrider_completion_logprobs(const outrider_completion* completion, size_t* count) {
  *count = completion->logprobs.size();
  return completion->logprobs.data();
}

void outrider_completion_top_logprobs(const outrider_completion* completion, size_t index,
                                      const int32_t** tokens, const float** logprobs, size_t* count) {
  const bool is_there = index < completion->rows.size();
  const outrider_completion::TopTokens row =
      is_there ? completion->rows[index] : outrider_completion::TopTokens();
  *tokens = completion->ids.data() + row.begin;
  *logprobs = completion->top.data() + row.begin;
  *count = row.count;
}

const float* outrider_completion_prompt_logprobs(const outrider_completion* completion, size_t* count) {
  *count = completion->prompt_logprobs.size();
  return completion->prompt_logprobs.data();
}

const outrider_statistics* outrider_completion_statistics(const outrider_completion* completion) {
  return &completion->statistics;
}

const char* outrider_fate_name(int fate) { return name_of(fate, NodeFate::kOverBudget, outrider::fate_name); }

const char* outrider_cause_name(int cause) {
  return name_of(cause, NodeCause::kOutsideVocabulary, outrider::cause_name);
}

const char* outrider_origin_name(int origin) {
  return name_of(origin, TokenOrigin::kBonus, outrider::origin_name);
}
