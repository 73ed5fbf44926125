// SPDX-License-Identifier: Apache-2.0
// The part of an answer that both endpoints share: the sequence of chunks, usage, figures and the end.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/api/answers/answer_figures.h"
#include "server/api/answers/speculation_writer.h"
#include "server/api/generation_call.h"
#include "server/api/requests/generation_spec.h"

namespace outrider {

// "outrider-<version>-<hash>". The hash covers all properties of the model that decide the bits of an answer.
std::string system_fingerprint(const ServedModel& model);

// Letters and digits that depend only on `seed`.
std::string id_text(std::string_view seed, int length);

class Answer : public GenerationCall {
 public:
  struct Names {
    std::string_view id_prefix;     // "chatcmpl-"
    std::string_view whole;         // "object" of a whole answer: "chat.completion"
    std::string_view chunk;         // "object" of a chunk
    bool prompt_in_choice = false;  // prompt_logprobs is a member of the choice, else of the answer
  };

  bool wants_traces() const final { return spec_.streams && spec_.trace == SpeculationTrace::kDetailed; }
  void start(std::string& events) final;
  void add(int choice, ChoiceDelta delta, std::string& events) final;
  std::string body() final;

 protected:
  Answer(const GenerationSpec& spec, const CallContext& context, const Names& names,
         std::vector<Request> requests);

  // Each of these writes members of the choice's object, after "index".
  // The members of the first chunk. False: there is no such chunk.
  virtual bool begin_choice(int choice, JsonWriter& json) = 0;
  // Adds a delta. A stream writes its members and returns whether they justify a chunk. `text` is the
  // delta's text, with the stop string if the request wants it.
  virtual bool add_choice(int choice, std::string_view text, const ChoiceDelta& delta, JsonWriter& json) = 0;
  // The members of the last chunk, except for the finish reason.
  virtual void end_choice(int choice, JsonWriter& json) = 0;
  // The members of a choice of a whole answer.
  virtual void whole_choice(int choice, JsonWriter& json) = 0;
  virtual bool has_tool_calls(int) const { return false; }

  const GenerationSpec& spec() const { return spec_; }
  const Tokenizer& tokenizer() const { return *spec_.model->tokenizer; }
  size_t choices() const { return choices_.size(); }
  // The number of tokens that are part of the text: all but a stop token at its end.
  size_t text_tokens(const ChoiceDelta& delta) const;

 private:
  struct Choice {
    ChoiceFigures figures;
    std::optional<Completion> completion;  // set when the choice is finished
    std::vector<TokenId> tokens;           // only if the answer lists them
    std::vector<TokenId> prompt;           // kept until its log-probabilities arrive, if they are wanted
    std::string prompt_logprobs;           // their JSON, for answers that are not streamed
    std::optional<SpeculationWriter> speculation;
  };

  std::string take_prompt_logprobs(Choice& choice, const ChoiceDelta& delta) const;
  JsonWriter begin_chunk(std::string& events, int choice) const;
  void end_choices(JsonWriter& json) const;
  bool add_shared_members(Choice& choice, const ChoiceDelta& delta, const std::string& prompt,
                          JsonWriter& json) const;
  void end_stream(std::string& events);
  void finish_choice(int choice, std::string& events);
  void write_reason(JsonWriter& json, int choice) const;
  Usage usage() const;
  void write_single_figures(JsonWriter& json) const;

  GenerationSpec spec_;
  bool prompt_in_choice_;
  std::vector<Choice> choices_;
  std::string whole_prefix_, chunk_prefix_;  // up to "choices":[
  size_t unfinished_ = 0;
};

}  // namespace outrider
