// SPDX-License-Identifier: Apache-2.0
// Every field of both endpoints with null, wrong types and extreme values.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "config/option_table.h"
#include "server/api/answers/test_model.h"

namespace outrider {
namespace {

constexpr std::string_view kValues[] = {"null",
                                        "true",
                                        "false",
                                        "0",
                                        "1",
                                        "-1",
                                        "0.5",
                                        "-0.5",
                                        "2.0001",
                                        "101",
                                        "2147483647",
                                        "2147483648",
                                        "9007199254740993",
                                        "9223372036854775807",
                                        "18446744073709551615",
                                        "-9223372036854775808",
                                        "1e308",
                                        "\"\"",
                                        "\"x\"",
                                        "[]",
                                        "[\"x\"]",
                                        "[0]",
                                        "[[0]]",
                                        "{}",
                                        "{\"0\":1}",
                                        "{\"type\":\"x\"}"};

// The values that a field accepts, besides null.
struct FieldCase {
  std::string_view name;
  std::set<std::string_view> accepted;
};

const FieldCase kCommon[] = {
    {"model", {}},
    {"temperature", {"0", "1", "0.5"}},
    {"top_p", {"1", "0.5"}},
    {"min_p", {"0", "1", "0.5"}},
    {"presence_penalty", {"0", "1", "-1", "0.5", "-0.5"}},
    {"frequency_penalty", {"0", "1", "-1", "0.5", "-0.5"}},
    {"repetition_penalty", {"1", "0.5", "2.0001"}},
    {"top_k", {"0", "1", "-1", "101", "2147483647"}},
    {"seed",
     {"0", "1", "-1", "101", "2147483647", "2147483648", "9007199254740993", "9223372036854775807",
      "-9223372036854775808"}},
    {"n", {"1"}},
    {"stop", {"\"x\"", "[]", "[\"x\"]"}},
    {"stop_token_ids", {"[]", "[0]"}},
    {"logit_bias", {"{}", "{\"0\":1}"}},
    {"ignore_eos", {"true", "false"}},
    {"skip_special_tokens", {"true", "false"}},
    {"include_stop_str_in_output", {"true", "false"}},
    {"return_token_ids", {"true", "false"}},
    {"stream", {"true", "false"}},
    {"stream_options", {}},  // never accepted without "stream"
    {"speculative", {"{}"}},
    {"response_format", {}},
    {"structured_outputs", {"{}"}},
    {"guided_json", {"true", "{}", "{\"0\":1}"}},  // schemas
    {"guided_regex", {"\"\"", "\"x\""}},
    {"guided_choice", {"[\"x\"]"}},
    {"guided_grammar", {}},
    {"best_of", {"1"}},
    {"min_tokens", {"0", "1", "101"}},
    {"allowed_token_ids", {"[0]"}},
    {"bad_words", {"[]", "[\"x\"]"}},
    {"truncate_prompt_tokens", {"-1", "1", "101", "2147483647", "2147483648"}},
    {"use_beam_search", {"false"}},
    {"prompt_logprobs", {"0", "1"}},
    {"audio", {}},
    {"suffix", {"\"\""}},
    {"length_penalty", {"1"}},
    {"repeat_penalty", {"1", "0.5", "2.0001"}},
    {"repeat_last_n", {"-1", "0", "1", "101", "2147483647", "2147483648"}},
    {"top_n_sigma", {"0", "1", "-1", "0.5", "-0.5", "101", "2.0001"}},
    {"typical_p", {"1", "0.5"}},
    {"xtc_probability", {"0", "1", "0.5"}},
    {"xtc_threshold", {"0", "1", "0.5"}},
    {"dry_multiplier", {"0", "1", "0.5", "101", "2.0001"}},
    {"dry_base", {"1", "101", "2.0001"}},
    {"dry_allowed_length", {"1", "101"}},
    {"dry_penalty_last_n", {"0", "1", "-1", "101"}},
    {"dry_sequence_breakers", {"[]", "[\"x\"]"}},
    {"no_such_field", {}},
};

const FieldCase kChat[] = {
    {"messages", {}},
    {"max_tokens", {"-1", "1", "101"}},
    {"max_completion_tokens", {"-1", "1", "101"}},
    {"logprobs", {"true", "false"}},
    {"top_logprobs", {"0"}},
    {"tools", {"[]"}},
    {"tool_choice", {}},
    {"parallel_tool_calls", {"true", "false"}},
    {"add_generation_prompt", {"true", "false"}},
    {"continue_final_message", {"false"}},
    {"chat_template_kwargs", {"{}", "{\"0\":1}", "{\"type\":\"x\"}"}},
    {"enable_thinking", {"true", "false"}},
    {"reasoning_effort", {}},
    {"reasoning_format", {}},
    {"thinking_token_budget", {"-1", "0", "1", "101", "2147483647"}},
    {"thinking_budget", {"-1", "0", "1", "101", "2147483647"}},
    {"echo", {"false"}},
    {"prompt", {}},
};

const FieldCase kCompletion[] = {
    {"prompt", {"\"x\"", "[\"x\"]", "[0]", "[[0]]"}},
    {"max_tokens", {"-1", "0", "1", "101"}},
    {"logprobs", {"0", "1"}},
    {"echo", {"true", "false"}},
    {"add_special_tokens", {"true", "false"}},
    {"messages", {}},
    {"tools", {"[]"}},
};

struct Tally {
  int bodies = 0;
  int accepted = 0;
};

void expect_outcome(const ApiResult<std::unique_ptr<GenerationCall>>& call, const FieldCase& field,
                    std::string_view value, bool is_accepted) {
  SCOPED_TRACE(std::string(field.name) + ": " + std::string(value));
  if (is_accepted) {
    EXPECT_TRUE(call.ok()) << call.error().message;
    return;
  }
  ASSERT_FALSE(call.ok());
  const ApiError& error = call.error();
  EXPECT_TRUE(error.status == 400 || (field.name == "model" && error.status == 404)) << error.status;
  EXPECT_EQ(error.message.find('\n'), std::string::npos);
  if (error.code == "context_length_exceeded") return;
  EXPECT_TRUE(error.param.starts_with(field.name)) << error.param;
  EXPECT_TRUE(error.message.starts_with(error.param + ": ")) << error.message;
}

template <typename Fields>
Tally try_all(const TestServedModel& model, ParseFunction parse, const Fields& fields) {
  const bool is_chat = parse == parse_chat;
  const std::string base = is_chat ? R"("messages":[{"role":"user","content":"Hi"}])" : R"("prompt":"Hi")";
  Tally tally;
  for (const FieldCase& field : fields) {
    const bool replaces_base = base.starts_with("\"" + std::string(field.name) + "\"");
    for (const std::string_view value : kValues) {
      std::string body = "{";
      if (!replaces_base) body += base + ",";
      body.append("\"").append(field.name).append("\":").append(value).append("}");
      const bool is_null = value == "null" && !replaces_base;
      const bool is_accepted = is_null || field.accepted.contains(value);
      const auto call = parse_call(parse, body, model.context());
      expect_outcome(call, field, value, is_accepted);
      ++tally.bodies;
      tally.accepted += call.ok() ? 1 : 0;
    }
    // An object with one key twice.
    const std::string twice =
        "{" + base + ",\"" + std::string(field.name) + "\":null,\"" + std::string(field.name) + "\":null}";
    const auto call = parse_call(parse, twice, model.context());
    EXPECT_FALSE(call.ok()) << twice;
    ++tally.bodies;
  }
  return tally;
}

TEST(RequestFields, TakeWhatTheyShouldAndNameThemselvesElse) {
  const TestServedModel model;
  Tally total;
  for (const Tally& tally :
       {try_all(model, parse_chat, kCommon), try_all(model, parse_completion, kCommon),
        try_all(model, parse_chat, kChat), try_all(model, parse_completion, kCompletion)}) {
    total.bodies += tally.bodies;
    total.accepted += tally.accepted;
  }
  EXPECT_GE(total.bodies, 2000);
  EXPECT_GE(total.accepted, 200);
}

// The error of a completion that has this value in a field of the option table; empty: none.
std::string field_error(const TestServedModel& model, std::string_view name, const std::string& value) {
  const size_t dot = name.find('.');
  const std::string member =
      dot == std::string_view::npos
          ? fmt::format(R"("{}":{})", name, value)
          : fmt::format(R"("{}":{{"{}":{}}})", name.substr(0, dot), name.substr(dot + 1), value);
  const auto call = model.completion(R"({"prompt":"Hi",)" + member + "}");
  return call.ok() ? "" : call.error().message;
}

TEST(RequestFields, HaveTheRangesOfTheOptionTable) {
  const TestServedModel model;
  int fields = 0;
  for (const OptionRow& row : option_table()) {
    const bool is_whole = row.type() == OptionType::kInteger;
    if (row.http.name.empty() || (!is_whole && row.type() != OptionType::kNumber)) continue;
    ++fields;
    const NumberRange range = http_range(row.http.name);
    for (const auto& [bound, sign] : {std::pair(range.min, -1), std::pair(range.max, 1)}) {
      const bool is_large = std::abs(bound) > 1e18;
      const int64_t whole = whole_bound(bound);
      const bool has_no_limit = row.http.name == "max_tokens";  // -1
      const std::string inside = is_whole ? std::to_string(whole) : fmt::format("{}", bound);
      const std::string outside = !is_whole  ? fmt::format("{}", bound + sign * 0.25 * (std::abs(bound) + 1))
                                  : is_large ? inside + "0"
                                             : std::to_string(whole + sign * (has_no_limit ? 2 : 1));
      // A number of tokens within its range may still be too large for the context.
      EXPECT_THAT(field_error(model, row.http.name, inside),
                  testing::Not(testing::ContainsRegex("(number|integer) from")));
      EXPECT_THAT(field_error(model, row.http.name, outside), testing::ContainsRegex("a number|an integer"))
          << row.http.name << " " << outside;
    }
  }
  EXPECT_GT(fields, 11);
}

std::string param_of(const TestServedModel& model, const std::string& members) {
  const auto call = model.chat(R"({"messages":[{"role":"user","content":"Hi"}],)" + members + "}");
  return call.ok() ? "accepted" : call.error().param;
}

// Members of a request with an error in one of them, and the path of that error.
constexpr std::pair<const char*, const char*> kMemberErrors[] = {
    {R"("stop":["a",""])", "stop[1]"},
    {R"("stop":["a",3])", "stop[1]"},
    {R"("stop_token_ids":[1,4096])", "stop_token_ids[1]"},
    {R"("logit_bias":{"4096":1})", "logit_bias.4096"},
    {R"("logit_bias":{"01x":1})", "logit_bias.01x"},
    {R"("logit_bias":{"5":101})", "logit_bias.5"},
    {R"("logit_bias":{"5":"1"})", "logit_bias.5"},
    {R"("speculative":{"mode":"on"})", "speculative.mode"},
    {R"("speculative":{"mode":"auto","enabled":true})", "speculative"},
    {R"("speculative":{"budget":0})", "speculative.budget"},
    {R"("speculative":{"acceptance":"exact"})", "speculative.acceptance"},
    {R"("speculative":{"trace":true})", "speculative.trace"},
    {R"("speculative":{"method":7})", "speculative.method"},
    {R"("speculative":{"method":[]})", "speculative.method"},
    {R"("speculative":{"method":["ngram",7]})", "speculative.method[1]"},
    {R"("speculative":{"max_draft_len":0})", "speculative.max_draft_len"},
    {R"("speculative":{"max_children":65})", "speculative.max_children"},
    {R"("speculative.n_max":-1)", "speculative.n_max"},
    {R"("speculative.n_max":"16")", "speculative.n_max"},
    {R"("stream":true,"stream_options":{"include_usage":1})", "stream_options.include_usage"},
    {R"("response_format":{"type":"json"})", "response_format.type"},
    {R"("response_format":{"type":"json_schema"})", "response_format.json_schema"},
    {R"("response_format":{"type":"json_schema","json_schema":{"schema":[]}})",
     "response_format.json_schema.schema"},
    {R"("response_format":{"type":"json_schema","json_schema":{"name":"x","schema":[]}})",
     "response_format.json_schema.schema"},
    {R"("response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"type":"nothing"}}})",
     "response_format.json_schema.schema"},
    {R"("response_format":{"type":"json_object"},"guided_regex":"a")", "guided_regex"},
    {R"("structured_outputs":{"json":{},"regex":"a"})", "structured_outputs.regex"},
    {R"("structured_outputs":{"regex":"("})", "structured_outputs.regex"},
    {R"("structured_outputs":{"backend":"x"})", "structured_outputs.backend"},
    {R"("structured_outputs":{"choice":[]})", "structured_outputs.choice"},
    {R"("tools":[{"type":"function"}])", "tools[0].function"},
    {R"("tools":[{"type":"x","function":{"name":"f"}}])", "tools[0].type"},
    {R"("tools":[{"type":"function","function":{"name":"a b"}}])", "tools[0].function.name"},
    {R"("tools":[{"type":"function","function":{"name":"f","parameters":[]}}])",
     "tools[0].function.parameters"},
    {R"("tools":[{"type":"function","function":{"name":"f"}},{"type":"function","function":{"name":"f"}}])",
     "tools[1]"},
    {R"("tool_choice":"required")", "tool_choice"},
    {R"("tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":{"type":"function","function":{"name":"g"}})",
     "tool_choice.function.name"},
    {R"("tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":{"type":"allowed_tools",
        "allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"g"}}]}})",
     "tool_choice.allowed_tools.tools[0].function.name"},
    {R"("tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":{"type":"allowed_tools",
        "allowed_tools":{"mode":"required","tools":[{"type":"function","function":{"name":"f"}}]}})",
     "accepted"},
    {R"("verbosity":"loud")", "verbosity"},
    {R"("verbosity":"low")", "accepted"},
    {R"("prompt_cache_options":{"mode":"explicit","ttl":"30m"})", "accepted"},
    {R"("prediction":{"type":"content","content":"x"})", "accepted"},
    {R"("prediction":{"type":"content","content":[{"type":"text","text":"x"}]})", "accepted"},
    {R"("prediction":null)", "accepted"},
    {R"("prediction":"x")", "prediction"},
    {R"("prediction":{"content":"x"})", "prediction.type"},
    {R"("prediction":{"type":"text","content":"x"})", "prediction.type"},
    {R"("prediction":{"type":"content"})", "prediction.content"},
    {R"("prediction":{"type":"content","content":1})", "prediction.content"},
    {R"("prediction":{"type":"content","content":[{"type":"image","text":"x"}]})",
     "prediction.content[0].type"},
    {R"("prediction":{"type":"content","content":[{"type":"text"}]})", "prediction.content[0].text"},
    {R"("moderation":{"model":"m"})", "moderation"},
    {R"("top_logprobs":2)", "top_logprobs"},
    {R"("chat_template_kwargs":{"messages":false})", "chat_template_kwargs.messages"},
    {R"("chat_template_kwargs":{"a":[1]})", "chat_template_kwargs.a"},
    {R"("enable_thinking":"no")", "enable_thinking"},
    {R"("reasoning_effort":"huge")", "reasoning_effort"},
    {R"("continue_final_message":true)", "continue_final_message"},
    {R"("modalities":["text","audio"])", "modalities"},
    {R"("modalities":["text"])", "accepted"},
    {R"("n":17)", "n"},
    {R"("bad_words":["a"," "])", "bad_words[1]"},
    {R"("bad_words":["a",3])", "bad_words[1]"},
    {R"("allowed_token_ids":[])", "allowed_token_ids"},
    {R"("allowed_token_ids":[0,4096])", "allowed_token_ids[1]"},
    {R"("max_tokens":4,"min_tokens":5)", "min_tokens"},
    {R"("min_tokens":1024)", "min_tokens"},
    {R"("truncate_prompt_tokens":0)", "truncate_prompt_tokens"},
};

TEST(RequestFields, NameTheMemberInside) {
  const TestServedModel model;
  for (const auto& [members, param] : kMemberErrors) EXPECT_EQ(param_of(model, members), param) << members;
}

std::string message_param(const TestServedModel& model, const std::string& messages) {
  const auto call = model.chat(R"({"messages":)" + messages + "}");
  return call.ok() ? "accepted" : call.error().param;
}

// Clients of the Model Context Protocol put prefixes before long names.
TEST(RequestFields, NamesOfToolsHaveUpTo128Letters) {
  const TestServedModel model;
  for (const size_t length : {size_t{128}, size_t{129}}) {
    const std::string name(length, 'n');
    const auto call = model.chat(R"({"messages":[{"role":"user","content":"x"}],"tools":[{"type":"function",)"
                                 R"("function":{"name":")" +
                                 name + "\"}}]}");
    EXPECT_EQ(call.ok() ? "" : call.error().param, length == 128 ? "" : "tools[0].function.name");
  }
}

TEST(RequestFields, NameWhatIsWrongInMessages) {
  const TestServedModel model;
  const std::pair<const char*, const char*> cases[] = {
      {R"([])", "messages"},
      {R"([3])", "messages[0]"},
      {R"([{"content":"x"}])", "messages[0].role"},
      {R"([{"role":"user"}])", "messages[0].content"},
      {R"([{"role":"user","content":null}])", "messages[0].content"},
      {R"([{"role":"user","content":3}])", "messages[0].content"},
      {R"([{"role":"robot","content":"x"}])", "messages[0].role"},
      {R"([{"role":"developer","content":"x"}])", "accepted"},
      {R"([{"role":"user","content":[{"type":"text","text":"x"}]}])", "accepted"},
      {R"([{"role":"user","content":[{"type":"image_url","image_url":{}}]}])", "accepted"},
      {R"([{"role":"user","content":[{"type":"input_audio","input_audio":{}}]}])",
       "messages[0].content[0].type"},
      {R"([{"role":"user","content":[{"type":"text"}]}])", "messages[0].content[0].text"},
      {R"([{"role":"user","content":"x","audio":{"id":"y"}}])", "messages[0].audio"},
      {R"([{"role":"assistant","content":"x","tool_calls":[{"function":{"arguments":"{}"}}]}])",
       "messages[0].tool_calls[0].function.name"},
      {R"([{"role":"user","content":"x","content":"y"}])", "messages[0].content"},
      {"[{\"role\":\"user\",\"content\":\"\xff\"}]", ""},
      {R"([{"role":"user","content":"\ud800"}])", ""},
      {R"([{"role":"user","content":"\ud83d\ude00"}])", "accepted"},
  };
  for (const auto& [messages, param] : cases) EXPECT_EQ(message_param(model, messages), param) << messages;
}

TEST(RequestFields, RefuseWhatIsNoJsonObject) {
  const TestServedModel model;
  for (const char* body : {"", " ", "null", "[]", "3", "{", "{}}", "{\"a\":NaN}", "{\"a\":1e400}",
                           "{\"a\":01}", "{'a':1}", "{\"a\":\"\\x\"}", "\xEF\xBB\xBF{}", "{\"a\":-}"}) {
    const auto call = model.chat(body);
    ASSERT_FALSE(call.ok()) << body;
    EXPECT_EQ(call.error().status, 400) << body;
    EXPECT_EQ(call.error().type, "invalid_request_error");
  }
}

TEST(RequestFields, LimitsHoldExactly) {
  const TestServedModel model;
  const auto nested = [](int depth) {
    std::string text = R"({"messages":[{"role":"user","content":"x"}],"metadata":)";
    for (int i = 0; i < depth; ++i) text += '[';
    for (int i = 0; i < depth; ++i) text += ']';
    return text + "}";
  };
  EXPECT_TRUE(model.chat(nested(62)).ok());
  EXPECT_FALSE(model.chat(nested(65)).ok());
  EXPECT_FALSE(model.chat(nested(100000)).ok());
  const auto many = [](std::string_view open, std::string_view item, int count, std::string_view close) {
    std::string text(open);
    for (int i = 0; i < count; ++i) {
      if (i > 0) text += ',';
      std::string one(item);
      if (const size_t place = one.find('#'); place != std::string::npos)
        one.replace(place, 1, std::to_string(i));
      text += one;
    }
    return text + std::string(close);
  };
  EXPECT_EQ(param_of(model, many("\"stop\":[", "\"a\"", 16, "]")), "accepted");
  EXPECT_EQ(param_of(model, many("\"stop\":[", "\"a\"", 17, "]")), "stop");
  EXPECT_EQ(param_of(model, "\"stop\":\"" + std::string(256, 'a') + "\""), "accepted");
  EXPECT_EQ(param_of(model, "\"stop\":\"" + std::string(257, 'a') + "\""), "stop");
  EXPECT_EQ(param_of(model, many("\"logit_bias\":{", "\"#\":1", 1024, "}")), "accepted");
  EXPECT_EQ(param_of(model, many("\"logit_bias\":{", "\"#\":1", 1025, "}")), "logit_bias");
  EXPECT_EQ(param_of(model, R"("logprobs":true,"top_logprobs":20)"), "accepted");
  EXPECT_EQ(param_of(model, R"("logprobs":true,"top_logprobs":21)"), "top_logprobs");
  EXPECT_EQ(param_of(model, R"("n":16)"), "accepted");
  const std::string tool = R"({"type":"function","function":{"name":"f#"}})";
  EXPECT_EQ(param_of(model, many("\"tool_choice\":\"none\",\"tools\":[", tool, 1024, "]")), "accepted");
  EXPECT_EQ(param_of(model, many("\"tool_choice\":\"none\",\"tools\":[", tool, 1025, "]")), "tools");
  EXPECT_EQ(message_param(model, many("[", R"({"role":"user","content":""})", 4097, "]")), "messages");
  EXPECT_TRUE(model.completion(many(R"({"n":2,"prompt":[)", "\"a\"", 512, "]}")).ok());
  EXPECT_EQ(model.completion(many(R"({"n":2,"prompt":[)", "\"a\"", 513, "]}")).error().param, "prompt");
}

TEST(RequestFields, ListWhatMeansNothing) {
  const TestServedModel model;
  const auto call = model.chat(
      R"({"messages":[{"role":"user","content":"x","mood":1}],"user":"me","cache_prompt":true,"store":false})");
  ASSERT_TRUE(call.ok()) << call.error().message;
  EXPECT_EQ((*call)->ignored_fields(),
            (std::vector<std::string>{"user", "cache_prompt", "store", "messages[0].mood"}));
}

TEST(RequestFields, RefuseWhatNoServerKnows) {
  const TestServedModel model;
  const auto call = model.completion(R"({"prompt":"x","max_token":3})");
  ASSERT_FALSE(call.ok());
  EXPECT_EQ(call.error().message, "max_token: is not known here; leave it out");
}

TEST(RequestFields, HaveTheNamesOfLlamaServer) {
  const TestServedModel model;
  auto call =
      model.completion(R"({"prompt":"x","n_predict":3,"repeat_penalty":1.5,"repeat_last_n":-1,"seed":-1})");
  ASSERT_TRUE(call.ok()) << call.error().message;
  const Request request = (*call)->requests()[0];
  EXPECT_EQ(request.max_tokens, 3);
  EXPECT_EQ(request.sampling.repetition_penalty, 1.5);
  EXPECT_EQ(request.sampling.seed, 77u);  // a random one
  call = model.chat(R"({"messages":[{"role":"user","content":"x"}],"n_predict":5.0})");
  ASSERT_TRUE(call.ok()) << call.error().message;
  EXPECT_EQ((*call)->requests()[0].max_tokens, 5);
  call = model.completion(R"({"prompt":"x","n_predict":-1})");
  ASSERT_TRUE(call.ok()) << call.error().message;
  EXPECT_GT((*call)->requests()[0].max_tokens, 1000);
  call = model.completion(R"({"prompt":"x","repeat_penalty":1.5,"repeat_last_n":64})");
  ASSERT_FALSE(call.ok());
  EXPECT_EQ(call.error().param, "repeat_last_n");
}

// A schema that no automaton can hold costs its own guarantee where there are other tools.
TEST(RequestFields, ServeAToolWithoutAGuaranteeBesideOthers) {
  const TestServedModel model;
  const std::string body =
      R"({"messages":[{"role":"user","content":"x"}],"tool_choice":"required","tools":[)";
  const std::string bad = R"({"type":"function","function":{"name":"f","parameters":{"not":{}}}})";
  const std::string good = R"({"type":"function","function":{"name":"g"}})";
  const auto alone = model.chat(body + bad + "]}");
  ASSERT_FALSE(alone.ok());
  EXPECT_EQ(alone.error().param, "tools[0].function.parameters");
  const auto beside = model.chat(body + good + "," + bad + "]}");
  ASSERT_TRUE(beside.ok()) << beside.error().message;
  EXPECT_THAT((*beside)->ignored_fields(),
              testing::ElementsAre(testing::StartsWith("tools[1].function.parameters: calls are not held")));
  const std::string contradiction = R"({"type":"function","function":{"name":"f","parameters":{"enum":[]}}})";
  const auto refused = model.chat(body + good + "," + contradiction + "]}");
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().param, "tools[1].function.parameters");
}

// Whether the output may be exactly these tokens.
bool takes(TokenConstraint& constraint, const std::vector<TokenId>& tokens) {
  TokenConstraint::State state = constraint.start();
  for (const TokenId token : tokens) {
    if (state != TokenConstraint::kDead) state = constraint.advance(state, token);
  }
  return state != TokenConstraint::kDead && constraint.is_complete(state);
}

TEST(RequestFields, TakeASchemaBesideAnyJsonFormat) {
  const TestServedModel model;
  const std::string schema = R"("schema":{"type":"object","properties":{"a":{"const":1}},"required":["a"]})";
  for (const std::string& format :
       {R"({"type":"json_object",)" + schema + "}", R"({"type":"json_schema",)" + schema + "}",
        R"({"type":"json_schema","json_schema":{)" + schema + "}}"}) {
    const auto call = model.completion(R"({"prompt":"x","response_format":)" + format + "}");
    ASSERT_TRUE(call.ok()) << call.error().message;
    TokenConstraint& constraint = *(*call)->requests()[0].constraint;
    EXPECT_FALSE(takes(constraint, model.tokens("{}"))) << format;
    EXPECT_TRUE(takes(constraint, model.tokens("{\"a\": 1}"))) << format;
  }
}

}  // namespace
}  // namespace outrider
