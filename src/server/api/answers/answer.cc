// SPDX-License-Identifier: Apache-2.0
#include "server/api/answers/answer.h"

#include <algorithm>
#include <utility>

#include "base/fnv1a.h"
#include "server/api/answers/stop_reason.h"
#include "server/api/answers/token_text.h"

namespace outrider {
namespace {

std::string answer_prefix(const CallContext& context, const Answer::Names& names, std::string_view object) {
  std::string out;
  JsonWriter json(out);
  json.begin_object().member("id", std::string(names.id_prefix) + context.id).member("object", object);
  json.member("created", context.created).member("model", context.model->name);
  json.member("system_fingerprint", system_fingerprint(*context.model)).key("choices").begin_array();
  return out;
}

void write_prompt_member(JsonWriter& json, const std::string& logprobs) {
  if (!logprobs.empty()) json.key("prompt_logprobs").json(logprobs);
}

}  // namespace

std::string id_text(std::string_view seed, int length) {
  constexpr std::string_view kCharacters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  constexpr int kPerHash = 9;  // characters that 64 bits give
  std::string text;
  uint64_t bits = fnv1a(seed);
  for (int i = 0; i < length; ++i, bits /= kCharacters.size()) {
    if (i > 0 && i % kPerHash == 0) bits = fnv1a(text);
    text += kCharacters[bits % kCharacters.size()];
  }
  return text;
}

std::string system_fingerprint(const ServedModel& model) {
  const EngineInfo& info = model.info;
  const std::string bits = model.name + '|' + info.family + '|' + info.kernels + '|' + info.weights + '|' +
                           info.kv_cache_type + '|' + std::to_string(info.parameters);
  constexpr char kHex[] = "0123456789abcdef";
  std::string text = "outrider-" OUTRIDER_VERSION "-";
  for (int shift = 28; shift >= 0; shift -= 4) text += kHex[fnv1a(bits) >> shift & 15];
  return text;
}

Answer::Answer(const GenerationSpec& spec, const CallContext& context, const Names& names,
               std::vector<Request> requests)
    : GenerationCall(std::move(requests), spec.streams, spec.ignored),
      spec_(spec),
      prompt_in_choice_(names.prompt_in_choice),
      choices_(this->requests().size()),
      whole_prefix_(answer_prefix(context, names, names.whole)),
      chunk_prefix_("data: " + answer_prefix(context, names, names.chunk)),
      unfinished_(choices_.size()) {
  for (size_t i = 0; i < choices_.size(); ++i) {
    const Request& request = this->requests()[i];
    choices_[i].figures.prompt_tokens = static_cast<int64_t>(request.prompt.size());
    const bool is_listed = spec_.prompt_logprobs >= 0 && request.prompt_logprobs >= 0;
    if (is_listed) choices_[i].prompt = request.prompt;
  }
  if (!spec_.streams || spec_.trace == SpeculationTrace::kNone) return;
  for (Choice& choice : choices_) {
    choice.speculation.emplace(spec_.model->tokenizer, spec_.request.skip_special);
  }
}

// Begins a chunk and the object of its one choice.
JsonWriter Answer::begin_chunk(std::string& events, int choice) const {
  events += chunk_prefix_;
  JsonWriter json(events);
  json.begin_object().member("index", choice);
  return json;
}

// Ends the choice and the list of choices of a chunk, which the usage follows.
void Answer::end_choices(JsonWriter& json) const {
  json.end_object().end_array();
  if (!spec_.continuous_usage && !spec_.include_usage) return;
  json.key("usage");
  spec_.continuous_usage ? write_usage(json, usage()) : void(json.null());
}

void Answer::start(std::string& events) {
  if (!spec_.streams) return;
  for (int i = 0; i < static_cast<int>(choices_.size()); ++i) {
    const size_t before = events.size();
    JsonWriter json = begin_chunk(events, i);
    if (begin_choice(i, json)) {
      json.key("finish_reason").null();
      end_choices(json);
      json.end_object();
      events += "\n\n";
    } else {
      events.resize(before);
    }
  }
}

// The prompt's log-probabilities for the first delta, else nothing.
std::string Answer::take_prompt_logprobs(Choice& choice, const ChoiceDelta& delta) const {
  std::string out;
  if (choice.prompt.empty() || delta.is_trace_alone()) return out;
  JsonWriter json(out);
  write_prompt_logprobs(json, tokenizer(), std::exchange(choice.prompt, {}),
                        {.logprobs = delta.prompt_logprobs, .top = spec_.prompt_logprobs});
  return out;
}

void Answer::add(int index, ChoiceDelta delta, std::string& events) {
  Choice& choice = choices_[static_cast<size_t>(index)];
  choice.figures.add(delta);
  std::string text = std::move(delta.text);
  if (delta.completion && spec_.include_stop) text += matched_stop(spec_, *delta.completion);
  const std::string prompt = take_prompt_logprobs(choice, delta);
  std::string chunk;
  JsonWriter json = begin_chunk(chunk, index);
  const bool has_members = add_choice(index, text, delta, json);
  if (spec_.streams) {
    const bool has_shared_members = add_shared_members(choice, delta, prompt, json);
    if (has_members || has_shared_members) {
      json.key("finish_reason").null();
      end_choices(json);
      if (!prompt_in_choice_) write_prompt_member(json, prompt);
      json.end_object();
      events.append(chunk).append("\n\n");
    }
  } else {
    if (spec_.return_token_ids)
      choice.tokens.insert(choice.tokens.end(), delta.tokens.begin(), delta.tokens.end());
    if (!prompt.empty()) choice.prompt_logprobs = prompt;
  }
  if (!delta.completion) return;
  choice.completion = std::move(delta.completion);
  finish_choice(index, events);
}

// The members of a streamed choice that both endpoints have. Returns whether they justify a chunk.
bool Answer::add_shared_members(Choice& choice, const ChoiceDelta& delta, const std::string& prompt,
                                JsonWriter& json) const {
  if (prompt_in_choice_) write_prompt_member(json, prompt);
  const bool has_tokens = spec_.return_token_ids && !delta.tokens.empty();
  if (has_tokens) json.member("token_ids", delta.tokens);
  const bool has_speculation =
      choice.speculation && (!delta.tokens.empty() || (delta.trace && delta.trace->nodes.size() > 1));
  if (has_speculation) choice.speculation->write(json, delta);
  return !prompt.empty() || has_tokens || has_speculation;
}

void Answer::finish_choice(int index, std::string& events) {
  --unfinished_;
  if (!spec_.streams) return;
  JsonWriter json = begin_chunk(events, index);
  end_choice(index, json);
  write_reason(json, index);
  end_choices(json);
  if (unfinished_ == 0 && !spec_.include_usage) write_single_figures(json);
  json.end_object();
  events += "\n\n";
  if (unfinished_ == 0) end_stream(events);
}

void Answer::end_stream(std::string& events) {
  if (spec_.include_usage) {
    events += chunk_prefix_;
    JsonWriter json(events);
    json.end_array().key("usage");
    write_usage(json, usage());
    write_single_figures(json);
    json.end_object();
    events += "\n\n";
  }
  events += "data: [DONE]\n\n";
}

std::string Answer::body() {
  std::string out = whole_prefix_;
  JsonWriter json(out);
  for (size_t i = 0; i < choices_.size(); ++i) {
    json.begin_object().member("index", i);
    whole_choice(static_cast<int>(i), json);
    if (prompt_in_choice_) write_prompt_member(json, choices_[i].prompt_logprobs);
    if (spec_.return_token_ids) json.member("token_ids", choices_[i].tokens);
    write_reason(json, static_cast<int>(i));
    json.end_object();
  }
  json.end_array().key("usage");
  write_usage(json, usage());
  if (!prompt_in_choice_) write_prompt_member(json, choices_[0].prompt_logprobs);
  write_single_figures(json);
  json.end_object();
  return out;
}

size_t Answer::text_tokens(const ChoiceDelta& delta) const {
  const bool is_ended_by_token = delta.completion && delta.completion->finish_reason == FinishReason::kStop &&
                                 !delta.tokens.empty() && is_stop_token(spec_, delta.tokens.back());
  return delta.tokens.size() - (is_ended_by_token ? 1 : 0);
}

// Writes OpenAI's finish_reason and vLLM's stop_reason, which is the stop string or stop token.
void Answer::write_reason(JsonWriter& json, int index) const {
  const std::optional<Completion>& completion = choices_[static_cast<size_t>(index)].completion;
  if (!completion) {
    json.key("finish_reason").null();
    return;
  }
  const bool is_stop = completion->finish_reason == FinishReason::kStop;
  json.member("finish_reason", is_stop && has_tool_calls(index)
                                   ? "tool_calls"
                                   : std::string_view(finish_reason_name(completion->finish_reason)));
  json.key("stop_reason");
  const auto& stops = spec_.request.stop_tokens;
  if (const std::string stop = matched_stop(spec_, *completion); !stop.empty()) {
    json.value(stop);
  } else if (is_stop && !completion->tokens.empty() &&
             std::find(stops.begin(), stops.end(), completion->tokens.back()) != stops.end()) {
    json.value(completion->tokens.back());
  } else {
    json.null();
  }
}

// The choices of one prompt share it, so it counts once, with the cached tokens of the first choice.
Usage Answer::usage() const {
  Usage total{.has_prediction = spec_.has_prediction};
  for (size_t i = 0; i < choices_.size(); ++i) {
    const ChoiceFigures& figures = choices_[i].figures;
    total.completion_tokens += figures.completion_tokens;
    total.accepted_prediction_tokens += figures.accepted_prediction_tokens;
    total.rejected_prediction_tokens += figures.rejected_prediction_tokens;
    if (i % static_cast<size_t>(spec_.n) != 0) continue;
    total.prompt_tokens += figures.prompt_tokens;
    total.cached_tokens += figures.cached_tokens;
  }
  return total;
}

void Answer::write_single_figures(JsonWriter& json) const {
  if (choices_.size() != 1 || !choices_[0].completion) return;
  write_figures(json, choices_[0].figures, *choices_[0].completion);
}

}  // namespace outrider
