// SPDX-License-Identifier: Apache-2.0
// Parameters of requests that no command has.
#include <limits>
#include <optional>
#include <string_view>

#include "config/option_groups.h"
#include "config/option_readers.h"
#include "config/option_table.h"

namespace outrider {
namespace {

using namespace option_groups;
using Type = OptionType;

// clang-format off
const OptionRow kParameters[] = {
    {.name = "min-tokens", .group = kLength, .member = member<&Request::rules, &TokenRules::min_tokens>(),
     .help = "tokens before a stop token or stop text may end the output", .range = {0, kMaxOutput},
     .http = {"min_tokens"}},
    {.name = "stop-token-ids", .group = kLength, .member = member<&Request::stop_tokens>(),
     .help = "tokens that end the output, beside the model's own", .range = {0, kMaxInt},
     .http = {"stop_token_ids"}, .noun = "token ids"},
    {.name = "allowed-token-ids", .group = kSampling, .member = member<&Request::rules, &TokenRules::allowed>(),
     .help = "the only tokens that may appear", .range = {0, kMaxInt}, .http = {"allowed_token_ids"},
     .noun = "token ids"},
    {.name = "forbidden-token-ids", .group = kSampling, .member = read_by<read_forbidden, Request>(Type::kTextList),
     .help = "sequences of token ids that may not appear, as in 1,2"},
    {.name = "prediction-token-ids", .group = kSpeculation, .member = member<&Request::prediction>(),
     .help = "text that much of the output should repeat: drafts come from it", .range = {0, kMaxInt},
     .noun = "token ids"},
    {.name = "prompt-logprobs", .group = kOutput, .member = member<&Request::prompt_logprobs>(),
     .help = "log-probabilities of the prompt's tokens, and of the N likeliest in place of each; -1: none",
     .range = {-1, Request::kMaxLogprobs}, .http = {"prompt_logprobs", NumberRange{0, Request::kMaxLogprobs}}},
    {.name = "skip-special-tokens", .group = kOutput, .member = member<&Request::skip_special>(),
     .help = "control tokens give no text", .http = {"skip_special_tokens"}},
    {.name = "sample-index", .group = kSampling, .member = member<&Request::sample_index>(),
     .help = "number of this answer among several to one prompt; each has its own randomness",
     .range = {0, kMaxTokens}},
    {.name = "adapters", .group = kMachine, .member = read_by<read_request_adapters, Request>(Type::kTextList),
     .help = "names of the adapters to use, each perhaps with :SCALE behind it; none: no adapter; without it the engine's defaults"},
    {.name = "cache-scope", .group = kMachine, .member = member<&Request::cache_scope>(),
     .help = "cached prompts are shared within a scope only", .range = {0, kNoEnd}},
    // 0 stands for the engine's limit; over HTTP the field is left out for this.
    {.name = "speculation", .group = kSpeculation, .member = member<&Request::speculation, &RequestSpeculation::enabled>(),
     .help = "false: the request is decoded plainly", .http = {"speculative.enabled"}},
    {.name = "policy", .group = kSpeculation, .member = named<kPolicies, &Request::speculation, &RequestSpeculation::is_auto>(),
     .help = "auto: measured costs decide how much is drafted; fixed: every step drafts all of it"},
    {.name = "max-draft-tokens", .group = kSpeculation,
     .member = member<&Request::speculation, &RequestSpeculation::max_draft_tokens>(),
     .help = "drafted tokens of a step, at most", .range = {0, 1024}, .http = {"speculative.budget", NumberRange{1, 1024}}},
    {.name = "max-draft-len", .group = kSpeculation,
     .member = member<&Request::speculation, &RequestSpeculation::max_draft_len>(),
     .help = "drafted tokens of a path, at most", .range = {0, kMaxDraftLen},
     .http = {"speculative.max_draft_len", NumberRange{1, kMaxDraftLen}}},
    {.name = "max-children", .group = kSpeculation,
     .member = member<&Request::speculation, &RequestSpeculation::max_children>(),
     .help = "drafted continuations of one token, at most; 1: chains", .range = {0, 64},
     .http = {"speculative.max_children", NumberRange{1, 64}}},
    {.name = "methods", .group = kSpeculation, .member = member<&Request::speculation, &RequestSpeculation::methods>(),
     .help = "the drafters that draft, by name, among the drafters that the engine was opened with",
     .http = {"speculative.method"}},
};
// clang-format on

}  // namespace

std::span<const OptionRow> parameter_table() { return kParameters; }

}  // namespace outrider
