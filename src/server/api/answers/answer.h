// SPDX-License-Identifier: Apache-2.0
// The part of an answer that both endpoints share: which chunks there are, usage, figures, the end.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/api/answers/answer_figures.h"
#include "server/api/answers/speculation_writer.h"
#include "server/api/generation_spec.h"

namespace outrider {

// "outrider-<version>-<what decides the bits of an answer, hashed>"
std::string system_fingerprint(const ServedModel& model);

uint64_t text_hash(std::string_view text);

class Answer : public GenerationCall {
 public:
  struct Names {
    std::string_view id_prefix;     // "chatcmpl-"
    std::string_view whole;         // object of a whole answer: "chat.completion"
    std::string_view chunk;         // and of a chunk
    bool prompt_in_choice = false;  // log-probabilities of prompts belong to choices, else to the answer
  };

  std::vector<Request>& requests() final { return requests_; }
  bool streams() const final { return spec_.streams; }
  bool wants_traces() const final { return spec_.streams && spec_.trace == SpeculationTrace::kDetailed; }
  const std::vector<std::string>& ignored_fields() const final { return spec_.ignored; }
  void start(std::string& events) final;
  void add(int choice, ChoiceDelta delta, std::string& events) final;
  std::string body() final;

 protected:
  Answer(const GenerationSpec& spec, const Context& context, const Names& names,
         std::vector<Request> requests);

  // Of the choice's object, behind "index":
  // The first chunk's; false: there is none.
  virtual bool begin_choice(int choice, std::string& out) = 0;
  // Takes the news; in a stream, appends what they bring and returns whether that is worth a chunk. `text` is
  // the news' text, with the stop string where it is asked for.
  virtual bool add_choice(int choice, std::string_view text, const ChoiceDelta& delta, std::string& out) = 0;
  // The last chunk's, but for the reason.
  virtual void end_choice(int choice, std::string& out) = 0;
  // A whole answer's.
  virtual void whole_choice(int choice, std::string& out) = 0;
  virtual bool has_tool_calls(int) const { return false; }

  const GenerationSpec& spec() const { return spec_; }
  const Tokenizer& tokenizer() const { return *spec_.model->tokenizer; }
  size_t choices() const { return choices_.size(); }
  // Tokens that are part of the text: all but one that ends it.
  size_t text_tokens(const ChoiceDelta& delta) const;

 private:
  struct Choice {
    ChoiceFigures figures;
    std::optional<Completion> completion;  // its text and tokens once it is done
    std::vector<TokenId> tokens;           // where the answer lists them
    std::vector<TokenId> prompt;           // until its log-probabilities come, where they are wanted
    std::string prompt_logprobs;           // the member, of an answer that is not streamed
    std::optional<SpeculationWriter> speculation;
  };

  std::string take_prompt_logprobs(Choice& choice, const ChoiceDelta& delta) const;
  void begin_chunk(std::string& events, int choice) const;
  void end_chunk(std::string& events, std::string_view last_members = "") const;
  void end_stream(std::string& events);
  void finish_choice(int choice, std::string& events);
  void append_reason(std::string& out, int choice) const;
  std::string matched_stop(const Completion& completion) const;
  bool is_stop_token(TokenId token) const;
  Usage usage() const;
  void append_single_figures(std::string& out) const;

  GenerationSpec spec_;
  bool prompt_in_choice_;
  std::vector<Request> requests_;
  std::vector<Choice> choices_;
  std::string whole_head_, chunk_head_;  // up to "choices":[
  size_t unfinished_ = 0;
};

}  // namespace outrider
