// SPDX-License-Identifier: Apache-2.0
// Whole answers and streams as clients get them.
#include "server/api/generation_call.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "server/api/answers/test_model.h"

namespace outrider {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kHi = R"("messages":[{"role":"user","content":"Hi"}])";

std::string chat_body(const std::string& more) { return std::string("{") + kHi + "," + more + "}"; }

// The text with a placeholder for the fingerprint, which depends on version and model.
std::string shown(std::string text) {
  const std::string key = "\"system_fingerprint\":\"";
  for (size_t place = 0; (place = text.find(key, place)) != std::string::npos;) {
    const size_t begin = place + key.size();
    text.replace(begin, text.find('"', begin) - begin, "fp");
    place = begin;
  }
  return text;
}

std::unique_ptr<GenerationCall> must(ApiResult<std::unique_ptr<GenerationCall>> call) {
  EXPECT_TRUE(call.ok()) << call.error().message;
  return call.ok() ? std::move(call).value() : nullptr;
}

TEST(GenerationCall, MakesRequests) {
  const TestServedModel model;
  const auto call = must(model.chat(chat_body(
      R"("n":3,"temperature":0.5,"top_p":0.9,"top_k":7,"min_p":0.1,"seed":-2,"stop":["a","b"],"max_tokens":9,
         "max_completion_tokens":5,"stop_token_ids":[7],"logit_bias":{"9":-100},"ignore_eos":true,"logprobs":true,
         "top_logprobs":4,"presence_penalty":1,"frequency_penalty":-1,"repetition_penalty":1.5,
         "speculative":{"mode":"auto","budget":6,"acceptance":"rejection","method":["suffix","mtp"],"max_draft_len":4,
                        "max_children":1})")));
  ASSERT_EQ(call->requests().size(), 3u);
  const Request& request = call->requests()[2];
  EXPECT_EQ(request.prompt, model.context().model->tokenizer->encode(
                                "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"));
  EXPECT_EQ(request.sample_index, 2u);
  EXPECT_EQ(request.max_tokens, 5);
  EXPECT_EQ(request.sampling.temperature, 0.5);
  EXPECT_EQ(request.sampling.top_p, 0.9);
  EXPECT_EQ(request.sampling.top_k, 7);
  EXPECT_EQ(request.sampling.min_p, 0.1);
  EXPECT_EQ(request.sampling.presence_penalty, 1);
  EXPECT_EQ(request.sampling.frequency_penalty, -1);
  EXPECT_EQ(request.sampling.repetition_penalty, 1.5);
  EXPECT_EQ(request.sampling.seed, static_cast<uint64_t>(-2));
  EXPECT_THAT(request.sampling.logit_bias, ElementsAre(std::pair<TokenId, float>(9, -100.0F)));
  EXPECT_THAT(request.stop, ElementsAre("a", "b"));
  EXPECT_THAT(request.stop_tokens, ElementsAre(7));
  EXPECT_TRUE(request.ignore_eos);
  EXPECT_EQ(request.logprobs, 4);
  EXPECT_EQ(request.cache_scope, 5u);
  EXPECT_TRUE(request.speculation.enabled);
  EXPECT_EQ(request.speculation.is_auto, true);
  EXPECT_EQ(request.speculation.max_draft_tokens, 6);
  EXPECT_EQ(request.speculation.max_draft_len, 4);
  EXPECT_EQ(request.speculation.max_children, 1);
  EXPECT_THAT(request.speculation.methods, ElementsAre("suffix", "mtp"));
  EXPECT_EQ(request.speculation.acceptance, AcceptanceRule::kRejection);
}

TEST(GenerationCall, DefaultsAreTheModels) {
  TestServedModel model;
  model.model().sampling.top_p = 0.8;
  const auto call = must(model.chat(std::string("{") + kHi + "}"));
  const Request& request = call->requests().front();
  EXPECT_EQ(request.sampling.temperature, 1.0);
  EXPECT_EQ(request.sampling.top_p, 0.8);
  EXPECT_EQ(request.sampling.seed, 77u);
  EXPECT_EQ(request.logprobs, -1);
  EXPECT_TRUE(request.speculation.enabled);
  EXPECT_FALSE(request.speculation.is_auto.has_value());
  EXPECT_EQ(request.max_tokens, 1024 - static_cast<int64_t>(request.prompt.size()));
  EXPECT_FALSE(call->streams());
  EXPECT_FALSE(
      must(model.chat(chat_body(R"("speculative":{"mode":"off"})")))->requests()[0].speculation.enabled);
}

TEST(GenerationCall, TakesTheSpeculationOfLlamaServer) {
  const TestServedModel model;
  const std::string others = R"(,"speculative.n_min":2,"speculative.p_min":0.75)";
  const auto speculation = [&](const std::string& longest) {
    return must(model.chat(chat_body(R"("speculative.n_max":)" + longest + others)))
        ->requests()[0]
        .speculation;
  };
  EXPECT_EQ(speculation("5").max_draft_tokens, 5);
  EXPECT_TRUE(speculation("5").enabled);
  EXPECT_FALSE(speculation("0").enabled);
}

TEST(GenerationCall, RefusesMoreThanTheContextHolds) {
  const TestServedModel model;
  const auto fits = model.completion(R"({"prompt":[1,2,3],"max_tokens":1021})");
  EXPECT_TRUE(fits.ok());
  const auto call = model.completion(R"({"prompt":[1,2,3],"max_tokens":1022})");
  ASSERT_FALSE(call.ok());
  EXPECT_EQ(call.error().code, "context_length_exceeded");
  EXPECT_EQ(call.error().param, "prompt");
  EXPECT_THAT(call.error().message, HasSubstr("1025: 3 of prompt and 1022"));
  const auto slides = must(model.completion(R"({"prompt":[1,2,3],"max_tokens":5000,"slide":2})"));
  EXPECT_EQ(slides->requests()[0].slide, 2);
  EXPECT_EQ(slides->requests()[0].max_tokens, 5000);
}

TEST(GenerationCall, RefusesAnotherModel) {
  const TestServedModel model;
  const auto call = model.chat(chat_body(R"("model":"../../etc/passwd")"));
  ASSERT_FALSE(call.ok());
  EXPECT_EQ(call.error().status, 404);
  EXPECT_EQ(error_body(call.error()),
            R"({"error":{"message":"model: expected 'small', found '../../etc/passwd'",)"
            R"("type":"invalid_request_error","param":"model","code":"model_not_found"}})");
}

TEST(GenerationCall, TakesAllFormsOfPrompts) {
  const TestServedModel model;
  EXPECT_EQ(must(model.completion(R"({"prompt":"a b"})"))->requests().size(), 1u);
  EXPECT_EQ(must(model.completion(R"({"prompt":["a","b"],"n":2})"))->requests().size(), 4u);
  EXPECT_THAT(must(model.completion(R"({"prompt":[5,6]})"))->requests()[0].prompt, ElementsAre(5, 6));
  const auto call = must(model.completion(R"({"prompt":[[5],[6,7]],"n":2})"));
  ASSERT_EQ(call->requests().size(), 4u);
  EXPECT_THAT(call->requests()[1].prompt, ElementsAre(5));
  EXPECT_THAT(call->requests()[2].prompt, ElementsAre(6, 7));
  EXPECT_EQ(call->requests()[3].sample_index, 3u);
}

TEST(GenerationCall, TakesRulesForTokens) {
  const TestServedModel model;
  const auto call = must(model.completion(
      R"({"prompt":"Hi","min_tokens":3,"allowed_token_ids":[5,6],"bad_words":[" red ball","red","loved to"]})"));
  const TokenRules& rules = call->requests()[0].rules;
  EXPECT_EQ(rules.min_tokens, 3);
  EXPECT_THAT(rules.allowed, ElementsAre(5, 6));
  // The word with and without a space before it.
  for (const char* word : {"red ball", " red ball", "red", " red", "loved to", " loved to"})
    EXPECT_EQ(std::ranges::count(rules.forbidden, model.tokens(word)), 1) << word;
}

TEST(GenerationCall, KeepsTheEndOfAPromptThatIsTooLong) {
  const TestServedModel model;
  const auto prompt_of = [&](const std::string& members) {
    return must(model.completion(R"({"prompt":[5,6,7,8],"max_tokens":4,)" + members + "}"))
        ->requests()[0]
        .prompt;
  };
  EXPECT_THAT(prompt_of(R"("truncate_prompt_tokens":2)"), ElementsAre(7, 8));
  EXPECT_THAT(prompt_of(R"("truncate_prompt_tokens":9)"), ElementsAre(5, 6, 7, 8));
  EXPECT_THAT(prompt_of(R"("truncate_prompt_tokens":-1)"), ElementsAre(5, 6, 7, 8));
  std::string many = "5";
  for (int i = 0; i < 2000; ++i) many += "," + std::to_string(6 + i);
  const std::string body = R"({"prompt":[)" + many + R"(],"max_tokens":24)";
  EXPECT_EQ(must(model.completion(body + R"(,"truncate_prompt_tokens":-1})"))->requests()[0].prompt.size(),
            1000u);
  EXPECT_FALSE(model.completion(body + "}").ok());
  const auto chat = must(model.chat(chat_body(R"("truncate_prompt_tokens":3)")));
  EXPECT_EQ(chat->requests()[0].prompt.size(), 3u);
}

TEST(ChatAnswer, Whole) {
  const TestServedModel model;
  const auto call = must(model.chat(std::string("{") + kHi + "}"));
  std::string events;
  call->start(events);
  call->add(0, delta_of(model, "Hel\"lo\n"), events);
  ChoiceDelta last = last_delta("Hel\"lo\n", model.tokens("Hel\"lo\n"));
  last.completion->cached_tokens = 3;
  last.completion->prompt_ms = 2;
  last.completion->first_token_ms = 3;
  last.completion->decode_ms = 8;
  const std::string count = std::to_string(last.completion->tokens.size());
  call->add(0, std::move(last), events);
  EXPECT_EQ(events, "");
  const std::string prompt = std::to_string(call->requests()[0].prompt.size());
  const std::string body = shown(call->body());
  EXPECT_TRUE(body.starts_with(
      R"({"id":"chatcmpl-abc","object":"chat.completion","created":1700000001,"model":"small",)"
      R"("system_fingerprint":"fp","choices":[{"index":0,"message":{"role":"assistant","content":"Hel\"lo\n",)"
      R"("refusal":null},"logprobs":null,"finish_reason":"stop","stop_reason":null}],"usage":{"prompt_tokens":)"))
      << body;
  EXPECT_THAT(body, HasSubstr("\"usage\":{\"prompt_tokens\":" + prompt + ",\"completion_tokens\":" + count));
  EXPECT_THAT(body, HasSubstr(R"("prompt_tokens_details":{"cached_tokens":3}})"));
  EXPECT_THAT(body, HasSubstr(R"("metrics":{"time_to_first_token_ms":3,"generation_time_ms":8,)"));
  EXPECT_THAT(body, HasSubstr(R"("speculative_decoding":null})"));
  EXPECT_THAT(body, HasSubstr(R"("timings":{"cache_n":3,)"));
}

TEST(ChatAnswer, TellsWhatBecameOfThePrediction) {
  const TestServedModel model;
  const std::string prediction = R"("prediction":{"type":"content","content":[{"type":"text","text":"one "},)"
                                 R"({"type":"text","text":"two<|im_end|>"}]})";
  const auto call = must(model.chat(chat_body(prediction)));
  EXPECT_EQ(call->requests()[0].prediction,
            model.context().model->tokenizer->encode("one two<|im_end|>",
                                                     {.add_special = false, .parse_special = false}));
  std::string events;
  call->start(events);
  ChoiceDelta last = last_delta("one", model.tokens("one"));
  last.completion->accepted_prediction_tokens = 5;
  last.completion->rejected_prediction_tokens = 2;
  call->add(0, std::move(last), events);
  EXPECT_THAT(shown(call->body()), HasSubstr(R"("completion_tokens_details":{"accepted_prediction_tokens":5,)"
                                             R"("rejected_prediction_tokens":2}})"));
}

TEST(ChatAnswer, Stream) {
  const TestServedModel model;
  const auto call = must(model.chat(chat_body(R"("stream":true,"stream_options":{"include_usage":true})")));
  EXPECT_TRUE(call->streams());
  std::string events;
  call->start(events);
  const std::string prefix =
      R"(data: {"id":"chatcmpl-abc","object":"chat.completion.chunk","created":1700000001,"model":"small",)"
      R"("system_fingerprint":"fp","choices":[)";
  EXPECT_EQ(shown(events), prefix + R"({"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,)"
                                    R"("finish_reason":null}],"usage":null})"
                                    "\n\n");
  events.clear();
  call->add(0, delta_of(model, "Hi"), events);
  EXPECT_EQ(shown(events), prefix + R"({"index":0,"delta":{"content":"Hi"},"logprobs":null,)"
                                    R"("finish_reason":null}],"usage":null})"
                                    "\n\n");
  events.clear();
  ChoiceDelta silent = delta_of(model, "Hi");
  silent.text.clear();  // the text is held back
  call->add(0, std::move(silent), events);
  EXPECT_EQ(events, "");
  call->add(0, last_delta("Hi", {}, FinishReason::kLength), events);
  const std::string end = shown(events);
  EXPECT_TRUE(end.starts_with(prefix +
                              R"({"index":0,"delta":{},"logprobs":null,"finish_reason":"length",)"
                              R"("stop_reason":null}],"usage":null})"
                              "\n\n" +
                              prefix + R"(],"usage":{"prompt_tokens":)"))
      << end;
  EXPECT_TRUE(end.ends_with("}\n\ndata: [DONE]\n\n")) << end;
  EXPECT_THAT(end, HasSubstr("\"timings\":"));
}

TEST(ChatAnswer, StreamsOfSeveralChoicesEndOnce) {
  const TestServedModel model;
  const auto call = must(model.chat(chat_body(R"("stream":true,"n":2)")));
  std::string events;
  call->start(events);
  EXPECT_THAT(events, HasSubstr("{\"index\":1,\"delta\":{\"role\""));
  call->add(1, last_delta("", {}), events);
  EXPECT_THAT(events, Not(HasSubstr("[DONE]")));
  call->add(0, last_delta("", {}), events);
  EXPECT_TRUE(events.ends_with("data: [DONE]\n\n"));
  EXPECT_THAT(events, Not(HasSubstr("\"usage\"")));
  EXPECT_THAT(events, Not(HasSubstr("\"metrics\"")));
}

TEST(ChatAnswer, LogprobsLeaveTheEndTokenOut) {
  const TestServedModel model;
  const auto call = must(model.chat(chat_body(R"("logprobs":true,"top_logprobs":1)")));
  std::string events;
  ChoiceDelta delta;
  delta.text = "!";
  delta.tokens = {model.tokens("!").front()};
  delta.origins = {TokenOrigin::kPlain};
  delta.logprobs = {{.logprob = -0.25F, .top = {{delta.tokens[0], -0.25F}}}};
  call->add(0, delta, events);
  ChoiceDelta last = last_delta("!", delta.tokens);
  last.logprobs = {{.logprob = -0.5F, .top = {{2, -0.5F}}}};
  call->add(0, last, events);
  EXPECT_THAT(call->body(),
              HasSubstr(R"("logprobs":{"content":[{"token":"!","logprob":-0.25,"bytes":[33],"top_logprobs":)"
                        R"([{"token":"!","logprob":-0.25,"bytes":[33]}]}],"refusal":null})"));
}

TEST(ChatAnswer, StopStringsMayBePartOfTheOutput) {
  const TestServedModel model;
  for (const bool include : {false, true}) {
    const auto call = must(model.chat(chat_body(R"("stop":["END"],"include_stop_str_in_output":)" +
                                                std::string(include ? "true" : "false"))));
    std::string events;
    ChoiceDelta delta = delta_of(model, "Hi END.");
    delta.text = "Hi ";
    Completion completion;
    completion.text = "Hi ";
    completion.tokens = delta.tokens;
    delta.completion = completion;
    call->add(0, std::move(delta), events);
    const std::string body = call->body();
    EXPECT_THAT(body, HasSubstr(include ? R"("content":"Hi END")" : R"("content":"Hi ")"));
    EXPECT_THAT(body, HasSubstr(R"("finish_reason":"stop","stop_reason":"END")"));
  }
}

TEST(ChatAnswer, TellsAcceptanceInVllmsShape) {
  const TestServedModel model;
  const auto call = must(model.chat(std::string("{") + kHi + "}"));
  std::string events;
  ChoiceDelta delta = delta_of(model, "a b c");
  ASSERT_GE(delta.tokens.size(), 3u);
  delta.tokens.resize(3);
  delta.origins = {TokenOrigin::kAccepted, TokenOrigin::kAccepted, TokenOrigin::kBonus};
  call->add(0, std::move(delta), events);
  ChoiceDelta last = last_delta("a b c", {});
  last.origins = {TokenOrigin::kRecovered};
  last.completion->speculation = {.method = "NGram",
                                  .lossless = false,
                                  .steps = 2,
                                  .drafted = 5,
                                  .accepted = 2,
                                  .committed = 4,
                                  .drafted_per_position = {2, 2, 1},
                                  .accepted_per_position = {1, 1, 0}};
  call->add(0, std::move(last), events);
  const std::string body = call->body();
  EXPECT_THAT(body,
              HasSubstr(R"("speculative_decoding":{"mean_acceptance_length":2,"draft_acceptance_rate":0.4,)"
                        R"("acceptance_histogram":[1,0,1],"num_spec_steps":2,"num_accepted_draft_tokens":2,)"
                        R"("num_draft_tokens":5,"num_spec_tokens":3,"drafter":"NGram","lossless":false,)"));
  EXPECT_THAT(body, HasSubstr(R"("draft_n":5,"draft_n_accepted":2})"));
}

TEST(ChatAnswer, StreamsWhatSpeculationDid) {
  const TestServedModel model;
  const auto call = must(model.chat(chat_body(R"("stream":true,"speculative":{"trace":"detailed"})")));
  EXPECT_TRUE(call->wants_traces());
  std::string events;
  ChoiceDelta delta = delta_of(model, "!", TokenOrigin::kAccepted);
  StepTrace trace;
  trace.step = 4;
  trace.nodes = {{.token = 2}, {.token = delta.tokens[0], .parent = 0, .draft_probability = 0.5}};
  delta.trace = trace;
  call->add(0, std::move(delta), events);
  EXPECT_THAT(events,
              HasSubstr(R"("speculation":{"tokens":[{"text":"!","origin":"accepted"}],"tree":{"step":4,)"));
  EXPECT_THAT(
      events,
      HasSubstr(R"("nodes":[{"text":"<|im_end|>","parent":-1,"fate":"accepted","cause":"","q":1,"p":null},)"
                R"({"text":"!","parent":0,"fate":"accepted","cause":"","q":0.5,"p":null}]}})"));
}

constexpr const char* kTools =
    R"("tools":[{"type":"function","function":{"name":"add","parameters":{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}}}])";

TEST(ChatAnswer, TellsCallsOfTools) {
  const TestServedModel model;  // its template shows no tools, so the format is plain
  for (const bool streams : {false, true}) {
    const auto call =
        must(model.chat(chat_body(std::string(kTools) + ",\"stream\":" + (streams ? "true" : "false"))));
    std::string events;
    call->add(0, delta_of(model, R"({"name": "add", "argu)"), events);
    EXPECT_EQ(events, "");
    call->add(0, delta_of(model, R"(ments": {"a": 1}})"), events);
    call->add(0, last_delta("", {}), events);
    const std::string out = streams ? events : call->body();
    EXPECT_THAT(out, HasSubstr(R"("type":"function","function":{"name":"add","arguments":"{\"a\": 1}"}}])"));
    EXPECT_THAT(out, HasSubstr(R"("finish_reason":"tool_calls")"));
    EXPECT_THAT(out, HasSubstr(streams ? R"("delta":{"tool_calls":[{"index":0,"id":")"
                                       : R"("content":null,"refusal":null,"tool_calls":[{"id":")"));
  }
}

TEST(ChatAnswer, ForcedCallsAreConstrained) {
  const TestServedModel model;
  const auto free = must(model.chat(chat_body(kTools)));
  EXPECT_EQ(free->requests()[0].constraint, nullptr);
  const auto forced = must(model.chat(chat_body(std::string(kTools) + R"(,"tool_choice":"required","n":2)")));
  for (const Request& request : forced->requests()) {
    ASSERT_NE(request.constraint, nullptr);
    TokenConstraint& constraint = *request.constraint;
    TokenConstraint::State state = constraint.start();
    for (const TokenId token : model.tokens(R"({"name": "add", "arguments": {"a": 12}})")) {
      ASSERT_NE(state, TokenConstraint::kDead);
      state = constraint.advance(state, token);
    }
    ASSERT_NE(state, TokenConstraint::kDead);
    EXPECT_TRUE(constraint.is_complete(state));
    EXPECT_EQ(constraint.advance(constraint.start(), model.tokens("Sure").front()), TokenConstraint::kDead);
  }
}

TEST(CompletionAnswer, WholeAndStream) {
  const TestServedModel model;
  const std::string prompt = R"("prompt":"Say","echo":true)";
  const auto whole = must(model.completion("{" + prompt + "}"));
  std::string events;
  whole->start(events);
  whole->add(0, delta_of(model, " hi"), events);
  whole->add(0, last_delta(" hi", {}), events);
  EXPECT_EQ(events, "");
  EXPECT_TRUE(
      shown(whole->body())
          .starts_with(R"({"id":"cmpl-abc","object":"text_completion","created":1700000001,"model":"small",)"
                       R"("system_fingerprint":"fp","choices":[{"index":0,"text":"Say hi","logprobs":null,)"
                       R"("finish_reason":"stop","stop_reason":null}],"usage":)"))
      << whole->body();
  const auto stream = must(model.completion("{" + prompt + ",\"stream\":true}"));
  stream->start(events);
  EXPECT_THAT(events,
              HasSubstr(R"("choices":[{"index":0,"text":"Say","logprobs":null,"finish_reason":null}]})"));
  events.clear();
  stream->add(0, delta_of(model, " hi"), events);
  EXPECT_THAT(events, HasSubstr(R"({"index":0,"text":" hi","logprobs":null,"finish_reason":null})"));
  stream->add(0, last_delta(" hi", {}), events);
  EXPECT_TRUE(events.ends_with("data: [DONE]\n\n"));
}

TEST(CompletionAnswer, Logprobs) {
  const TestServedModel model;
  const auto call = must(model.completion(R"({"prompt":"x","logprobs":1})"));
  EXPECT_EQ(call->requests()[0].logprobs, 1);
  std::string events;
  const TokenId a = model.tokens("a").front(), b = model.tokens("b").front();
  ChoiceDelta delta;
  delta.text = "ab";
  delta.tokens = {a, b};
  delta.origins = {TokenOrigin::kPlain, TokenOrigin::kPlain};
  delta.logprobs = {{.logprob = -1.5F, .top = {{b, -0.5F}}}, {.logprob = -2.0F, .top = {{b, -2.0F}}}};
  call->add(0, delta, events);
  call->add(0, last_delta("ab", {a, b}, FinishReason::kLength), events);
  EXPECT_THAT(call->body(),
              HasSubstr(R"("logprobs":{"tokens":["a","b"],"token_logprobs":[-1.5,-2],)"
                        R"("top_logprobs":[{"b":-0.5,"a":-1.5},{"b":-2}],"text_offset":[0,1]})"));
}

// The first delta of a prompt "ab", with the log-probabilities of its second token.
ChoiceDelta prompt_news(const TestServedModel& model) {
  const TokenId a = model.tokens("a").front(), b = model.tokens("b").front();
  ChoiceDelta delta = delta_of(model, "a");
  delta.logprobs = {{.logprob = -2.0F, .top = {{b, -0.25F}, {a, -2.0F}}}};
  delta.prompt_logprobs = {{.logprob = -1.5F, .top = {{a, -0.5F}, {b, -1.5F}}, .rank = 2}};
  return delta;
}

TEST(CompletionAnswer, EchoesThePromptWithItsLogprobs) {
  const TestServedModel model;
  const TokenId a = model.tokens("a").front(), b = model.tokens("b").front();
  const std::string prompt = "\"prompt\":[" + std::to_string(a) + "," + std::to_string(b) + "]";
  const std::string expected = R"("logprobs":{"tokens":["a","b","a"],"token_logprobs":[null,-1.5,-2],)"
                               R"("top_logprobs":[null,{"a":-0.5,"b":-1.5},{"b":-0.25,"a":-2}],)"
                               R"("text_offset":[0,1,2]})";
  for (const bool streams : {false, true}) {
    const auto call = must(model.completion("{" + prompt + R"(,"echo":true,"logprobs":1,"stream":)" +
                                            (streams ? "true}" : "false}")));
    EXPECT_EQ(call->requests()[0].prompt_logprobs, 1);
    std::string events;
    call->start(events);
    EXPECT_EQ(events, "");  // the prompt waits for its log-probabilities
    ChoiceDelta trace;
    trace.trace.emplace();
    call->add(0, std::move(trace), events);
    EXPECT_EQ(events, "");
    call->add(0, prompt_news(model), events);
    call->add(0, last_delta("a", {a}), events);
    const std::string out = streams ? events : call->body();
    EXPECT_THAT(out, HasSubstr(R"("text":"aba",)" + expected));
    EXPECT_THAT(out, Not(HasSubstr("prompt_logprobs")));
  }
}

TEST(Answer, ListsThePromptsLogprobsAsVllmDoes) {
  const TestServedModel model;
  const std::string a = std::to_string(model.tokens("a").front());
  const std::string b = std::to_string(model.tokens("b").front());
  const std::string second = R"("prompt_logprobs":[null,{")" + b +
                             R"(":{"logprob":-1.5,"rank":2,"decoded_token":"b"},")" + a +
                             R"(":{"logprob":-0.5,"rank":1,"decoded_token":"a"}}])";
  for (const bool streams : {false, true}) {
    const std::string stream = streams ? R"(,"stream":true)" : "";
    const auto completion = must(
        model.completion(R"({"prompt":[)" + a + "," + b + R"(],"prompt_logprobs":1,"n":2)" + stream + "}"));
    std::string events;
    for (int choice = 0; choice < 2; ++choice) {
      EXPECT_EQ(completion->requests()[static_cast<size_t>(choice)].prompt_logprobs, 1);
      completion->add(choice, prompt_news(model), events);
      completion->add(choice, last_delta("a", {}), events);
    }
    const std::string out = streams ? events : completion->body();
    const size_t first = out.find(second);
    ASSERT_NE(first, std::string::npos) << out;
    EXPECT_NE(out.find(second, first + 1), std::string::npos);  // once per choice

    const auto chat = must(model.chat(chat_body(R"("prompt_logprobs":0,"n":2)" + stream)));
    EXPECT_EQ(chat->requests()[0].prompt_logprobs, 0);
    EXPECT_EQ(chat->requests()[1].prompt_logprobs, -1);  // only the first choice computes the prompt's
    const size_t tokens = chat->requests()[0].prompt.size();
    ChoiceDelta delta = prompt_news(model);
    delta.prompt_logprobs.resize(tokens - 1);
    events.clear();
    chat->add(0, std::move(delta), events);
    for (int choice = 0; choice < 2; ++choice) chat->add(choice, last_delta("a", {}), events);
    const std::string said = streams ? events : chat->body();
    EXPECT_THAT(said, HasSubstr(streams ? R"("finish_reason":null}],"prompt_logprobs":[null,{")"
                                        : R"(,"prompt_logprobs":[null,{")"));
  }
}

TEST(GenerationCall, PromptLogprobsAreBounded) {
  const TestServedModel model;
  std::string tokens = "1";
  for (int i = 1; i < 1000; ++i) tokens += ",1";
  const std::string prompt = R"({"prompt":[)" + tokens + R"(],"max_tokens":1,)";
  EXPECT_TRUE(model.completion(prompt + R"("prompt_logprobs":20,"n":6})").ok());
  const auto refused = model.completion(prompt + R"("echo":true,"logprobs":20,"n":7})");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().message.substr(0, 88),
            "prompt_logprobs: expected at most 131072 log-probabilities of prompts, found 147000; ask");
}

TEST(GenerationCall, ErrorsInStreams) {
  EXPECT_EQ(
      error_event({.status = 500,
                   .type = "server_error",
                   .message = "a\nb",
                   .param = {},
                   .code = {},
                   .retry_after = {}}),
      "data: {\"error\":{\"message\":\"a\\nb\",\"type\":\"server_error\",\"param\":null,\"code\":null}}\n\n");
}

}  // namespace
}  // namespace outrider
