// SPDX-License-Identifier: Apache-2.0
#include "server/api/answers/answer.h"

#include <algorithm>
#include <utility>

#include "server/api/answers/stop_reason.h"
#include "server/api/answers/token_text.h"
#include "server/api/json_text.h"

namespace outrider {
namespace {

std::string answer_prefix(const CallContext& context, const Answer::Names& names, std::string_view object) {
  std::string out = "{\"id\":";
  append_json_string(out, std::string(names.id_prefix) + context.id);
  out += ",\"object\":";
  append_json_string(out, object);
  out += ",\"created\":" + std::to_string(context.created) + ",\"model\":";
  append_json_string(out, context.model->name);
  out += ",\"system_fingerprint\":";
  append_json_string(out, system_fingerprint(*context.model));
  return out += ",\"choices\":[";
}

}  // namespace

// FNV-1a
uint64_t text_hash(std::string_view text) {
  uint64_t value = 0xcbf29ce484222325;
  for (const char byte : text) value = (value ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  return value;
}

std::string id_text(std::string_view seed, int length) {
  constexpr std::string_view kCharacters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  constexpr int kPerHash = 9;  // characters that 64 bits give
  std::string text;
  uint64_t bits = text_hash(seed);
  for (int i = 0; i < length; ++i, bits /= kCharacters.size()) {
    if (i > 0 && i % kPerHash == 0) bits = text_hash(text);
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
  for (int shift = 28; shift >= 0; shift -= 4) text += kHex[text_hash(bits) >> shift & 15];
  return text;
}

Answer::Answer(const GenerationSpec& spec, const CallContext& context, const Names& names,
               std::vector<Request> requests)
    : spec_(spec),
      prompt_in_choice_(names.prompt_in_choice),
      requests_(std::move(requests)),
      choices_(requests_.size()),
      whole_prefix_(answer_prefix(context, names, names.whole)),
      chunk_prefix_("data: " + answer_prefix(context, names, names.chunk)),
      unfinished_(choices_.size()) {
  for (size_t i = 0; i < choices_.size(); ++i) {
    choices_[i].figures.prompt_tokens = static_cast<int64_t>(requests_[i].prompt.size());
    const bool is_listed = spec_.prompt_logprobs >= 0 && requests_[i].prompt_logprobs >= 0;
    if (is_listed) choices_[i].prompt = requests_[i].prompt;
  }
  if (!spec_.streams || spec_.trace == SpeculationTrace::kNone) return;
  for (Choice& choice : choices_) {
    choice.speculation.emplace(spec_.model->tokenizer, spec_.request.skip_special);
  }
}

void Answer::begin_chunk(std::string& events, int choice) const {
  events.append(chunk_prefix_).append("{\"index\":").append(std::to_string(choice));
}

void Answer::end_chunk(std::string& events, std::string_view last_members) const {
  events += "}]";
  if (spec_.continuous_usage) {
    events += ",\"usage\":";
    append_usage(events, usage());
  } else if (spec_.include_usage) {
    events += ",\"usage\":null";
  }
  events.append(last_members).append("}\n\n");
}

void Answer::start(std::string& events) {
  if (!spec_.streams) return;
  for (size_t i = 0; i < choices_.size(); ++i) {
    const size_t before = events.size();
    begin_chunk(events, static_cast<int>(i));
    if (begin_choice(static_cast<int>(i), events)) {
      events += ",\"finish_reason\":null";
      end_chunk(events);
    } else {
      events.resize(before);
    }
  }
}

// The member "prompt_logprobs" for the first delta, else nothing.
std::string Answer::take_prompt_logprobs(Choice& choice, const ChoiceDelta& delta) const {
  if (choice.prompt.empty() || delta.is_trace_alone()) return {};
  std::string out = ",\"prompt_logprobs\":";
  append_prompt_logprobs(out, tokenizer(), std::exchange(choice.prompt, {}),
                         {.logprobs = delta.prompt_logprobs, .top = spec_.prompt_logprobs});
  return out;
}

void Answer::add(int index, ChoiceDelta delta, std::string& events) {
  Choice& choice = choices_[static_cast<size_t>(index)];
  choice.figures.add(delta);
  if (spec_.return_token_ids && !spec_.streams) {
    choice.tokens.insert(choice.tokens.end(), delta.tokens.begin(), delta.tokens.end());
  }
  std::string text = std::move(delta.text);
  if (delta.completion && spec_.include_stop) text += matched_stop(spec_, *delta.completion);
  std::string prompt = take_prompt_logprobs(choice, delta);
  std::string chunk;
  begin_chunk(chunk, index);
  bool has_content = add_choice(index, text, delta, chunk) || !prompt.empty();
  if (spec_.streams) {
    if (prompt_in_choice_) chunk += std::exchange(prompt, {});
    if (spec_.return_token_ids && !delta.tokens.empty()) {
      chunk += ",\"token_ids\":";
      append_json_integers(chunk, delta.tokens);
      has_content = true;
    }
    if (choice.speculation && (!delta.tokens.empty() || (delta.trace && delta.trace->nodes.size() > 1))) {
      choice.speculation->append(chunk, delta);
      has_content = true;
    }
    if (has_content) {
      chunk += ",\"finish_reason\":null";
      end_chunk(chunk, prompt);
      events += chunk;
    }
  } else if (!prompt.empty()) {
    choice.prompt_logprobs = std::move(prompt);
  }
  if (!delta.completion) return;
  choice.completion = std::move(delta.completion);
  finish_choice(index, events);
}

void Answer::finish_choice(int index, std::string& events) {
  --unfinished_;
  if (!spec_.streams) return;
  begin_chunk(events, index);
  end_choice(index, events);
  append_reason(events, index);
  std::string figures;
  if (unfinished_ == 0 && !spec_.include_usage) append_single_figures(figures);
  end_chunk(events, figures);
  if (unfinished_ == 0) end_stream(events);
}

void Answer::end_stream(std::string& events) {
  if (spec_.include_usage) {
    events += chunk_prefix_;
    events += "],\"usage\":";
    append_usage(events, usage());
    append_single_figures(events);
    events += "}\n\n";
  }
  events += "data: [DONE]\n\n";
}

std::string Answer::body() {
  std::string out = whole_prefix_;
  for (size_t i = 0; i < choices_.size(); ++i) {
    if (i > 0) out += ',';
    out += "{\"index\":" + std::to_string(i);
    whole_choice(static_cast<int>(i), out);
    if (prompt_in_choice_) out += choices_[i].prompt_logprobs;
    if (spec_.return_token_ids) {
      out += ",\"token_ids\":";
      append_json_integers(out, choices_[i].tokens);
    }
    append_reason(out, static_cast<int>(i));
    out += '}';
  }
  out += "],\"usage\":";
  append_usage(out, usage());
  if (!prompt_in_choice_) out += choices_[0].prompt_logprobs;
  append_single_figures(out);
  return out += '}';
}

size_t Answer::text_tokens(const ChoiceDelta& delta) const {
  const bool is_ended_by_token = delta.completion && delta.completion->finish_reason == FinishReason::kStop &&
                                 !delta.tokens.empty() && is_stop_token(spec_, delta.tokens.back());
  return delta.tokens.size() - (is_ended_by_token ? 1 : 0);
}

// Appends OpenAI's finish_reason and vLLM's stop_reason, which is the stop string or stop token.
void Answer::append_reason(std::string& out, int index) const {
  const std::optional<Completion>& completion = choices_[static_cast<size_t>(index)].completion;
  out += ",\"finish_reason\":";
  if (!completion) {
    out += "null";
    return;
  }
  const bool is_stop = completion->finish_reason == FinishReason::kStop;
  append_json_string(
      out, is_stop && has_tool_calls(index) ? "tool_calls" : finish_reason_name(completion->finish_reason));
  out += ",\"stop_reason\":";
  const auto& stops = spec_.request.stop_tokens;
  if (const std::string stop = matched_stop(spec_, *completion); !stop.empty()) {
    append_json_string(out, stop);
  } else if (is_stop && !completion->tokens.empty() &&
             std::find(stops.begin(), stops.end(), completion->tokens.back()) != stops.end()) {
    out += std::to_string(completion->tokens.back());
  } else {
    out += "null";
  }
}

// The choices of one prompt share it, so it counts once, with the cached tokens of the first choice.
Usage Answer::usage() const {
  Usage total;
  for (size_t i = 0; i < choices_.size(); ++i) {
    const ChoiceFigures& figures = choices_[i].figures;
    total.completion_tokens += figures.completion_tokens;
    if (i % static_cast<size_t>(spec_.n) != 0) continue;
    total.prompt_tokens += figures.prompt_tokens;
    total.cached_tokens += figures.cached_tokens;
  }
  return total;
}

void Answer::append_single_figures(std::string& out) const {
  if (choices_.size() != 1 || !choices_[0].completion) return;
  append_figures(out, choices_[0].figures, *choices_[0].completion);
}

}  // namespace outrider
