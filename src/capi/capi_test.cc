// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "config/option_table.h"
#include "outrider/engine.h"
#include "outrider/outrider.h"

namespace outrider {
namespace {

const std::string kTestModel = OUTRIDER_SOURCE_DIR "/tests/data/models/llama";
const std::vector<int32_t> kTestPrompt = {5, 6, 7, 5, 6};

using Options = std::vector<std::pair<std::string, std::string>>;

template <auto kFree>
struct GiveBack {
  void operator()(auto* object) const { kFree(object); }
};
using EngineHandle = std::unique_ptr<outrider_engine, GiveBack<outrider_engine_close>>;
using RequestHandle = std::unique_ptr<outrider_request, GiveBack<outrider_request_free>>;
using CompletionHandle = std::unique_ptr<outrider_completion, GiveBack<outrider_completion_free>>;

// Null where the options are refused.
EngineHandle open_c(const Options& options, const outrider_drafter* drafter = nullptr) {
  outrider_options* given = outrider_options_new();
  outrider_options_add(given, "model", kTestModel.c_str());
  for (const auto& [name, value] : options) outrider_options_add(given, name.c_str(), value.c_str());
  if (drafter != nullptr) {
    EXPECT_EQ(outrider_options_set_drafter(given, drafter), OUTRIDER_OK);
  }
  outrider_engine* engine = nullptr;
  outrider_engine_open(given, &engine);
  outrider_options_free(given);
  return EngineHandle(engine);
}

RequestHandle request_for(const EngineHandle& engine, const Options& parameters) {
  RequestHandle request(outrider_request_new(engine.get()));
  outrider_request_set_prompt(request.get(), kTestPrompt.data(), kTestPrompt.size());
  for (const auto& [name, value] : parameters) {
    EXPECT_EQ(outrider_request_set(request.get(), name.c_str(), value.c_str()), OUTRIDER_OK)
        << outrider_last_error();
  }
  return request;
}

CompletionHandle complete(const EngineHandle& engine, const Options& parameters) {
  const RequestHandle request = request_for(engine, parameters);
  outrider_completion* completion = nullptr;
  EXPECT_EQ(outrider_generate(engine.get(), request.get(), nullptr, nullptr, &completion), OUTRIDER_OK)
      << outrider_last_error();
  return CompletionHandle(completion);
}

std::vector<int32_t> tokens_of(const CompletionHandle& completion) {
  size_t count = 0;
  const int32_t* tokens = outrider_completion_tokens(completion.get(), &count);
  return {tokens, tokens + count};
}

Result<std::unique_ptr<Engine>> open_cpp() {
  EngineOptions options;
  options.model = kTestModel;
  return Engine::open(std::move(options));
}

// The output of the C++ API, without speculation.
Completion plain(double temperature) {
  const auto engine = open_cpp();
  Request request{.prompt = kTestPrompt, .max_tokens = 24, .ignore_eos = true};
  request.sampling.temperature = temperature;
  request.sampling.seed = 3;
  request.logprobs = 2;
  auto done = (*engine)->generate(std::move(request));
  return *std::move(done);
}

const Options kGreedy = {{"max_tokens", "24"}, {"ignore_eos", "true"}};
const Options kSampled = {
    {"max_tokens", "24"}, {"ignore_eos", "true"}, {"temperature", "0.8"}, {"seed", "3"}};

TEST(CApi, GivesTheTokensOfTheCppApiWithEveryMethod) {
  const Completion greedy = plain(0), sampled = plain(0.8);
  for (const std::string method : {"none", "ngram", "suffix", "lookahead", "early_exit", "draft_target"}) {
    Options options = {{"speculative_config.decoding_type", method}, {"speculative_config.policy", "fixed"}};
    if (method == "draft_target") options.push_back({"speculative_config.speculative_model", kTestModel});
    const EngineHandle engine = open_c(options);
    ASSERT_NE(engine, nullptr) << outrider_last_error();
    EXPECT_EQ(tokens_of(complete(engine, kGreedy)), greedy.tokens) << method;
    EXPECT_EQ(tokens_of(complete(engine, kSampled)), sampled.tokens) << method;
  }
}

TEST(CApi, CompletionsTellEverything) {
  const Completion expected = plain(0);
  const EngineHandle engine = open_c({{"speculative", "ngram,policy=fixed"}});
  Options parameters = kGreedy;
  parameters.push_back({"logprobs", "2"});
  const CompletionHandle first = complete(engine, parameters);
  const CompletionHandle copy(outrider_completion_new(first.get()));
  size_t size = 0;
  EXPECT_EQ(std::string(outrider_completion_text(copy.get(), &size)), expected.text);
  EXPECT_EQ(size, expected.text.size());
  EXPECT_STREQ(outrider_completion_finish_reason(copy.get()), "length");
  const float* logprobs = outrider_completion_logprobs(copy.get(), &size);
  ASSERT_EQ(size, expected.tokens.size());
  for (size_t i = 0; i < size; ++i) {
    EXPECT_EQ(logprobs[i], expected.logprobs[i].logprob);
    const int32_t* ids = nullptr;
    const float* top = nullptr;
    size_t count = 0;
    outrider_completion_top_logprobs(copy.get(), i, &ids, &top, &count);
    ASSERT_EQ(count, 2u);
    EXPECT_EQ(std::make_pair(ids[1], top[1]), expected.logprobs[i].top[1]);
  }
  const outrider_statistics* statistics = outrider_completion_statistics(copy.get());
  EXPECT_EQ(statistics->prompt_tokens, 5);
  EXPECT_GT(statistics->steps, 0);
  int64_t accepted = 0;
  for (size_t i = 0; i < statistics->positions; ++i) accepted += statistics->accepted_per_position[i];
  EXPECT_EQ(accepted, statistics->accepted);
  const uint8_t* origins = outrider_completion_origins(copy.get(), &size);
  EXPECT_EQ(std::count(origins, origins + size, OUTRIDER_ORIGIN_ACCEPTED), accepted);
}

TEST(CApi, CompletionsHaveTheLogprobsOfThePrompt) {
  const auto cpp = open_cpp();
  Request request{.prompt = kTestPrompt, .max_tokens = 2};
  request.prompt_logprobs = 0;
  const auto expected = (*cpp)->generate(std::move(request));
  ASSERT_TRUE(expected.ok());
  const EngineHandle engine = open_c({});
  const CompletionHandle completion = complete(engine, {{"max_tokens", "2"}, {"prompt_logprobs", "0"}});
  size_t size = 0;
  const float* logprobs = outrider_completion_prompt_logprobs(completion.get(), &size);
  ASSERT_EQ(size, expected->prompt_logprobs.size());
  ASSERT_GT(size, 0u);
  for (size_t i = 0; i < size; ++i) EXPECT_EQ(logprobs[i], expected->prompt_logprobs[i].logprob);
  outrider_completion_prompt_logprobs(complete(engine, kGreedy).get(), &size);
  EXPECT_EQ(size, 0u);
}

TEST(CApi, EnginesAndNumbersHaveNames) {
  const auto cpp = open_cpp();
  const EngineHandle engine = open_c({});
  EXPECT_EQ((*cpp)->info().model_path, outrider_engine_model(engine.get()));
  EXPECT_EQ((*cpp)->info().kernels, outrider_engine_kernels(engine.get()));
  EXPECT_EQ((*cpp)->info().context, outrider_engine_context(engine.get()));
  EXPECT_EQ((*cpp)->info().vocab_size, outrider_engine_vocab_size(engine.get()));
  EXPECT_STREQ(outrider_origin_name(OUTRIDER_ORIGIN_BONUS), "bonus");
  EXPECT_STREQ(outrider_origin_name(OUTRIDER_ORIGIN_BONUS + 1), "");
  EXPECT_STREQ(outrider_cause_name(1), "lost arg-max");
  EXPECT_STRNE(outrider_cause_name(static_cast<int>(NodeCause::kOutsideVocabulary)), "");
  EXPECT_STREQ(outrider_cause_name(static_cast<int>(NodeCause::kOutsideVocabulary) + 1), "");
  EXPECT_STREQ(outrider_cause_name(-1), "");
  EXPECT_EQ(outrider_api_version(), OUTRIDER_API_MAJOR * 1000 + OUTRIDER_API_MINOR);
  EXPECT_EQ(std::string(outrider_version()).find_first_not_of("0123456789."), std::string::npos);
}

// Keeps everything that callbacks got.
struct Heard {
  std::string text;
  std::vector<int32_t> tokens;
  CompletionHandle completion;
  outrider_engine* engine = nullptr;
  size_t cancel_after = 1000;
  size_t traced_accepted = 0;
};

void hear(void* user, const outrider_progress* progress) {
  auto* heard = static_cast<Heard*>(user);
  heard->text.append(progress->text, progress->text_size);
  heard->tokens.insert(heard->tokens.end(), progress->tokens, progress->tokens + progress->token_count);
  if (heard->tokens.size() >= heard->cancel_after) outrider_cancel(heard->engine, progress->request);
  if (progress->completion != nullptr) heard->completion.reset(outrider_completion_new(progress->completion));
}

void hear_trace(void* user, const outrider_step_trace* trace) {
  for (size_t i = 1; i < trace->node_count; ++i) {
    EXPECT_STRNE(outrider_fate_name(trace->nodes[i].fate), "");
    if (std::string(outrider_fate_name(trace->nodes[i].fate)) == "accepted")
      ++static_cast<Heard*>(user)->traced_accepted;
  }
}

TEST(CApi, StreamsTracesAndCancels) {
  const EngineHandle engine = open_c({{"speculative", "ngram,policy=fixed"}});
  Heard whole, cut;
  cut.engine = engine.get();
  cut.cancel_after = 3;
  outrider_set_trace(engine.get(), hear_trace, &whole);
  const RequestHandle request = request_for(engine, kGreedy);
  outrider_submit(engine.get(), request.get(), hear, &whole, nullptr);
  for (bool is_running = true; is_running;) ASSERT_EQ(outrider_step(engine.get(), &is_running), OUTRIDER_OK);
  outrider_set_trace(engine.get(), nullptr, nullptr);
  uint64_t id = 0;
  outrider_submit(engine.get(), request.get(), hear, &cut, &id);
  EXPECT_GT(id, 0u);
  for (bool is_running = true; is_running;) ASSERT_EQ(outrider_step(engine.get(), &is_running), OUTRIDER_OK);

  EXPECT_EQ(whole.tokens, plain(0).tokens);
  EXPECT_EQ(whole.text, plain(0).text);
  EXPECT_EQ(static_cast<int64_t>(whole.traced_accepted),
            outrider_completion_statistics(whole.completion.get())->accepted);
  EXPECT_STREQ(outrider_completion_finish_reason(cut.completion.get()), "cancelled");
  EXPECT_LT(cut.tokens.size(), whole.tokens.size());
}

TEST(CApi, ClosesWithRequestsThatRun) {
  EngineHandle engine = open_c({{"speculative", "ngram,policy=fixed"}});
  Heard heard;
  outrider_submit(engine.get(), request_for(engine, kGreedy).get(), hear, &heard, nullptr);
  bool is_running = false;
  ASSERT_EQ(outrider_step(engine.get(), &is_running), OUTRIDER_OK);
  ASSERT_TRUE(is_running);
  const size_t count = heard.tokens.size();
  engine.reset();
  EXPECT_EQ(heard.tokens.size(), count);
  EXPECT_EQ(heard.completion, nullptr);
}

// A drafter with a behaviour that a test chooses.
struct TestDrafter {
  int (*draft)(outrider_tree* tree, const outrider_draft_request& request) = nullptr;
  std::vector<std::string> calls = {};
};

int call_draft(void* user, const outrider_draft_request* requests, outrider_tree* const* trees,
               size_t count) {
  int result = 0;
  for (size_t i = 0; i < count; ++i) result |= static_cast<TestDrafter*>(user)->draft(trees[i], requests[i]);
  return result;
}

outrider_drafter functions_of(TestDrafter& drafter) {
  const auto note = [](void* user, const char* call) {
    static_cast<TestDrafter*>(user)->calls.emplace_back(call);
  };
  static const auto kNote = note;
  return {.size = sizeof(outrider_drafter),
          .name = "Test",
          .user = &drafter,
          .draft = call_draft,
          .begin = [](void* user, uint64_t, const int32_t*, size_t) { kNote(user, "begin"); },
          .observe = [](void* user, uint64_t, size_t, const int32_t*, size_t) { kNote(user, "observe"); },
          .end = [](void* user, uint64_t) { kNote(user, "end"); },
          .destroy = [](void* user) { kNote(user, "destroy"); },
          .feature_layers = nullptr,
          .feature_layer_count = 0,
          .wants_final_norm = false,
          .absorb = nullptr};
}

TEST(CApi, ADrafterCannotChangeTheOutput) {
  using Tree = outrider_tree;
  using Asked = outrider_draft_request;
  const auto repeat = [](Tree* tree, const Asked& asked) {
    for (int node = 0, depth = 0; depth < asked.max_draft_len; ++depth)
      node = outrider_tree_add(tree, node, asked.tokens[asked.token_count - 1], 1);
    return 0;
  };
  const auto fail = [](Tree*, const Asked&) { return 5; };
  const auto nonsense = [](Tree* tree, const Asked& asked) {
    EXPECT_EQ(outrider_tree_add(tree, 17, 1, 1), -1);
    EXPECT_EQ(outrider_tree_add(tree, 0, -1, 1), -1);
    EXPECT_EQ(outrider_tree_add(tree, 0, 1, 1.5), -1);
    for (int i = 0; i < 3 * asked.max_nodes; ++i) outrider_tree_add(tree, i % 5, 1 << 30 | i, 0.5);
    return 0;
  };
  for (const auto draft : {+repeat, +fail, +nonsense}) {
    TestDrafter drafter{.draft = draft};
    const outrider_drafter functions = functions_of(drafter);
    EngineHandle engine = open_c({{"speculative_config.max_draft_len", "3"}}, &functions);
    ASSERT_NE(engine, nullptr) << outrider_last_error();
    EXPECT_STREQ(outrider_engine_drafter(engine.get()), "Test");
    EXPECT_EQ(tokens_of(complete(engine, kGreedy)), plain(0).tokens);
    EXPECT_EQ(tokens_of(complete(engine, kSampled)), plain(0.8).tokens);
    engine.reset();
    EXPECT_EQ(drafter.calls.front(), "begin");
    EXPECT_EQ(drafter.calls.back(), "destroy");
  }
}

// Keeps the states of the tokens that it is told of; drafts the last token again.
struct Reader {
  std::vector<int32_t> tokens;  // with states
  std::vector<std::vector<float>> states = {};
  bool is_in_order = true;
};

outrider_drafter functions_of(Reader& reader, const std::vector<int64_t>& layers) {
  return {
      .size = sizeof(outrider_drafter),
      .name = "Reader",
      .user = &reader,
      .draft =
          [](void* user, const outrider_draft_request* requests, outrider_tree* const* trees, size_t count) {
            for (size_t i = 0; i < count; ++i) {
              const outrider_draft_request& asked = requests[i];
              auto& reader = *static_cast<Reader*>(user);
              reader.is_in_order = reader.is_in_order && reader.states.size() + 1 == asked.token_count;
              outrider_tree_add(trees[i], 0, asked.tokens[asked.token_count - 1], 1);
            }
            return 0;
          },
      .begin = nullptr,
      .observe = nullptr,
      .end = nullptr,
      .destroy = nullptr,
      .feature_layers = layers.data(),
      .feature_layer_count = layers.size(),
      .wants_final_norm = true,
      .absorb =
          [](void* user, const outrider_features* features, size_t count) {
            auto& reader = *static_cast<Reader*>(user);
            for (size_t i = 0; i < count; ++i) {
              const outrider_features& one = features[i];
              reader.is_in_order = reader.is_in_order && one.first == reader.states.size() &&
                                   one.first + one.count < one.token_count;
              for (size_t j = 0; j < one.count; ++j) {
                reader.tokens.push_back(one.tokens[one.first + j]);
                reader.states.emplace_back(one.features[j], one.features[j] + one.size);
              }
            }
          }};
}

TEST(CApi, ADrafterMayReadTheModelsStates) {
  Reader reader;
  const std::vector<int64_t> layers = {0, 1};
  const outrider_drafter functions = functions_of(reader, layers);
  const EngineHandle engine = open_c({{"speculative_config.max_draft_len", "2"}}, &functions);
  ASSERT_NE(engine, nullptr) << outrider_last_error();
  EXPECT_EQ(tokens_of(complete(engine, kGreedy)), plain(0).tokens);
  EXPECT_TRUE(reader.is_in_order);
  ASSERT_GT(reader.states.size(), plain(0).tokens.size());
  // The stream that enters the first layer is the token's embedding, whatever comes before it.
  const size_t hidden_size = reader.states.front().size() / 3;
  std::map<int32_t, std::vector<float>> embeddings;
  for (size_t i = 0; i < reader.states.size(); ++i) {
    const std::vector<float> first(reader.states[i].begin(),
                                   reader.states[i].begin() + static_cast<std::ptrdiff_t>(hidden_size));
    EXPECT_EQ(embeddings.try_emplace(reader.tokens[i], first).first->second, first);
  }
  EXPECT_GT(embeddings.size(), size_t{1});
}

TEST(CApi, ADrafterThatReadsStatesIsChecked) {
  Reader reader;
  const std::vector<int64_t> layers = {0, 1000};
  outrider_drafter functions = functions_of(reader, layers);
  EXPECT_EQ(open_c({}, &functions), nullptr);
  EXPECT_NE(std::string(outrider_last_error()).find("learns from layer 1000 of the target"),
            std::string::npos);
  outrider_options* options = outrider_options_new();
  functions.absorb = nullptr;
  EXPECT_EQ(outrider_options_set_drafter(options, &functions), OUTRIDER_ERROR_USAGE);
  EXPECT_NE(std::string(outrider_last_error()).find("together with absorb"), std::string::npos);
  functions.feature_layers = nullptr;
  EXPECT_EQ(outrider_options_set_drafter(options, &functions), OUTRIDER_ERROR_USAGE);
  // A program of version 0.1 knows nothing of them.
  functions.size = offsetof(outrider_drafter, feature_layers);
  EXPECT_EQ(outrider_options_set_drafter(options, &functions), OUTRIDER_OK);
  outrider_options_free(options);
}

TEST(CApi, AFunctionMayChangeTheLogits) {
  const auto only = [](void* user, const int32_t* tokens, size_t count, float* logits, size_t vocab_size) {
    for (size_t i = 0; i < vocab_size; ++i) logits[i] = i == count % 7 + 20 ? 1 : -INFINITY;
    return tokens[count - 1] == *static_cast<int32_t*>(user) ? 3 : 0;
  };
  const EngineHandle engine = open_c({{"speculative", "ngram,max_draft_len=3,policy=fixed"}});
  ASSERT_NE(engine, nullptr) << outrider_last_error();
  const RequestHandle request(outrider_request_new(engine.get()));
  ASSERT_EQ(outrider_request_set_prompt(request.get(), kTestPrompt.data(), kTestPrompt.size()), OUTRIDER_OK);
  ASSERT_EQ(outrider_request_set(request.get(), "max_tokens", "6"), OUTRIDER_OK);
  for (int32_t last : {-1, 20, 26}) {
    ASSERT_EQ(outrider_request_set_logits_function(request.get(), only, &last), OUTRIDER_OK);
    outrider_completion* done = nullptr;
    ASSERT_EQ(outrider_generate(engine.get(), request.get(), nullptr, nullptr, &done), OUTRIDER_OK);
    const CompletionHandle completion(done);
    const std::vector<int32_t> expected = last < 0     ? std::vector{25, 26, 20, 21, 22, 23}
                                          : last == 20 ? std::vector{25, 26, 20}
                                                       : std::vector{25, 26};
    EXPECT_EQ(tokens_of(completion), expected);
    EXPECT_STREQ(outrider_completion_finish_reason(completion.get()), last < 0 ? "length" : "error");
  }
  ASSERT_EQ(outrider_request_set_logits_function(request.get(), nullptr, nullptr), OUTRIDER_OK);
  outrider_completion* done = nullptr;
  ASSERT_EQ(outrider_generate(engine.get(), request.get(), nullptr, nullptr, &done), OUTRIDER_OK);
  EXPECT_NE(tokens_of(CompletionHandle(done)), (std::vector{25, 26, 20, 21, 22, 23}));
}

TEST(CApi, ErrorsAreOneLineOfTheThread) {
  EXPECT_EQ(open_c({{"max_bach", "4"}}), nullptr);
  EXPECT_STREQ(outrider_last_error(), "options: unknown key 'max_bach'; did you mean 'max_batch'?");
  outrider_drafter functions = {};
  outrider_options* options = outrider_options_new();
  EXPECT_EQ(outrider_options_set_drafter(options, &functions), OUTRIDER_ERROR_USAGE);
  EXPECT_NE(std::string(outrider_last_error()).find("set size to sizeof(outrider_drafter)"),
            std::string::npos);
  outrider_options_free(options);

  const EngineHandle engine = open_c({{"disable_overlap_scheduler", "true"}});
  EXPECT_NE(outrider_engine_warning(engine.get(), 0), nullptr);
  EXPECT_EQ(outrider_engine_warning(engine.get(), 1), nullptr);
  const RequestHandle request(outrider_request_new(engine.get()));
  EXPECT_EQ(outrider_request_set(request.get(), "top_p", "2"), OUTRIDER_ERROR_USAGE);
  EXPECT_STREQ(outrider_last_error(), "top_p: expected a number from 1e-06 to 1, found '2'");
  EXPECT_NE(outrider_submit(engine.get(), request.get(), nullptr, nullptr, nullptr), OUTRIDER_OK);
  char* text = nullptr;
  size_t size = 0;
  const int32_t unknown = 1 << 30;
  EXPECT_EQ(outrider_detokenize(engine.get(), &unknown, 1, true, &text, &size), OUTRIDER_ERROR_USAGE);
  EXPECT_NE(outrider_apply_chat_template(engine.get(), nullptr, 0, true, &text, &size), OUTRIDER_OK);
  EXPECT_EQ(text, nullptr);
}

TEST(CApi, TextBecomesTokensAndText) {
  const EngineHandle engine = open_c({});
  int32_t* tokens = nullptr;
  size_t count = 0;
  ASSERT_EQ(outrider_tokenize(engine.get(), "hello world", 11, false, true, &tokens, &count), OUTRIDER_OK);
  char* text = nullptr;
  size_t size = 0;
  ASSERT_EQ(outrider_detokenize(engine.get(), tokens, count, true, &text, &size), OUTRIDER_OK);
  EXPECT_EQ(std::string(text, size), "hello world");
  outrider_free(text);
  outrider_free(tokens);
  outrider_free(nullptr);
}

// The text of a bound of a range, and a text beyond it on the side of `sign`.
std::pair<std::string, std::string> bound_texts(const OptionRow& row, double bound, int sign) {
  const int64_t whole = whole_bound(bound);
  constexpr int64_t kLarge = int64_t{1} << 60;
  if (row.type() == OptionType::kNumber)
    return {fmt::format("{}", bound), fmt::format("{}", bound + sign * (std::abs(bound) + 1))};
  return {std::to_string(whole),
          std::abs(bound) > kLarge ? std::to_string(whole) + "0" : std::to_string(whole + sign)};
}

TEST(CApi, ParametersHaveTheRangesOfTheOptionTable) {
  const EngineHandle engine = open_c({});
  const RequestHandle request = request_for(engine, {});
  int rows = 0;
  for (const OptionRow& row : option_table()) {
    const bool is_number = row.type() == OptionType::kNumber || row.type() == OptionType::kInteger;
    if (!row.member.is_of_request() || !is_number) continue;
    ++rows;
    for (const auto& [bound, sign] : {std::pair(row.range.min, -1), std::pair(row.range.max, 1)}) {
      const auto [inside, outside] = bound_texts(row, bound, sign);
      const std::string name = row.config_key();
      EXPECT_EQ(outrider_request_set(request.get(), name.c_str(), inside.c_str()), OUTRIDER_OK)
          << outrider_last_error();
      EXPECT_NE(outrider_request_set(request.get(), name.c_str(), outside.c_str()), OUTRIDER_OK)
          << name << " " << outside;
    }
  }
  EXPECT_GT(rows, 12);
}

}  // namespace
}  // namespace outrider
