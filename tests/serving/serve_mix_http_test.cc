// SPDX-License-Identifier: Apache-2.0
// 32 HTTP calls at once, streamed or not, to both endpoints and with all kinds of fields. The engine is short
// of pages and preempts in every step. Each answer must equal the answer of a server without speculation to
// only this call.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <latch>
#include <nlohmann/json.hpp>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "open/parts.h"
#include "tests/serving/serve_mix.h"
#include "tests/serving/serving.h"

namespace outrider {
namespace {

using Json = nlohmann::json;

#ifdef OUTRIDER_SLOW_TEST
constexpr uint32_t kSeeds = 12;
#else
constexpr uint32_t kSeeds = 1;
#endif

std::function<void(ServerParts&)> serving(EngineOptions options, int preempt_every) {
  return [options, preempt_every](ServerParts& parts) {
    parts.max_batch = kConcurrent;
    parts.open = [options, preempt_every]() -> Result<std::unique_ptr<Engine>> {
      OUTRIDER_TRY(auto opened, open_parts(options));
      opened->preempt_every = preempt_every;
      return Engine::assemble(std::move(opened));
    };
  };
}

struct Call {
  bool is_chat = false;
  bool streams = false;
  Json body;
  Json speculative;

  std::string path() const { return is_chat ? "/v1/chat/completions" : "/v1/completions"; }
};

// Fields besides the prompt, by OpenAI's and vLLM's names.
void add_sampling(std::mt19937& random, Json& body) {
  const auto one_in = [&](unsigned n) { return random() % n == 0; };
  const double temperatures[] = {0.0, 0.7, 1.0};
  body["temperature"] = temperatures[random() % 3];
  body["seed"] = random();
  body["max_tokens"] = 1 + random() % 40;
  body["return_token_ids"] = true;
  if (one_in(2)) body["ignore_eos"] = true;
  if (one_in(3)) body["top_p"] = 0.9;
  if (one_in(4)) body["top_k"] = 20;
  if (one_in(4)) body["min_p"] = 0.05;
  if (one_in(4)) body["repetition_penalty"] = 1.2;
  if (one_in(4)) body["frequency_penalty"] = 0.3;
  if (one_in(6)) body["logit_bias"] = {{"263", 3.0}, {"15", -100.0}};
  if (one_in(4)) body["stop"] = {one_in(2) ? " the" : ".", "\n\n"};
  if (one_in(8)) body["bad_words"] = {"was", "little"};
  if (one_in(8)) body["min_tokens"] = 1;
  if (one_in(4)) body["prompt_logprobs"] = random() % 4;
  const unsigned form = random() % 8;
  if (form == 0) body["guided_regex"] = "[A-Z][a-z ]{5,30}[.!]";
  if (form == 1) body["response_format"] = {{"type", "json_object"}};
  if (form == 2) body["guided_choice"] = {"Once upon a time", "One day", "There was a dog"};
}

Call call_for(uint32_t seed, int index) {
  std::mt19937 random(seed * 1000 + static_cast<uint32_t>(index));
  const std::vector<std::string> prompts = mixed_prompts(12);
  std::string prompt = prompts[random() % prompts.size()];
  if (random() % 3 == 0) prompt = prompts[4] + prompts[10] + prompt;  // some prompts share a beginning
  prompt.resize(std::min<size_t>(prompt.size(), 500));
  Call call;
  call.is_chat = random() % 3 == 0;
  call.streams = random() % 2 == 0;
  add_sampling(random, call.body);
  if (call.is_chat) {
    call.body["messages"] = {{{"role", "user"}, {"content", prompt}}};
    if (random() % 2 == 0) {
      call.body["logprobs"] = true;
      call.body["top_logprobs"] = random() % 4;
    }
  } else {
    call.body["prompt"] = prompt;
    call.body["echo"] = random() % 3 == 0;
    if (random() % 2 == 0) call.body["logprobs"] = random() % 4;
  }
  if (random() % 6 == 0) call.body["n"] = 2;
  const unsigned mode = random() % 4;
  if (mode == 0) call.speculative["mode"] = "off";
  if (mode == 1) call.speculative["budget"] = 1 + random() % 5;
  return call;
}

// Joins texts, lists, and the members of objects; other values are replaced.
void join(Json& to, const Json& from) {
  if (from.is_null()) return;
  if (to.is_null()) {
    to = from;
  } else if (from.is_string()) {
    to = to.get<std::string>() + from.get<std::string>();
  } else if (from.is_array()) {
    to.insert(to.end(), from.begin(), from.end());
  } else if (from.is_object()) {
    for (const auto& [name, value] : from.items()) join(to[name], value);
  } else {
    to = from;
  }
}

// The texts, tokens, log-probabilities and finish reasons of an answer per choice, from the whole or from its
// chunks.
Json answer_of(const Call& call, const TestAnswer& answer) {
  Json found = {{"status", answer.status}};
  if (answer.status != 200) return found;
  std::vector<Json> parts;
  if (call.streams) {
    std::istringstream lines(answer.body);
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("data: {")) parts.push_back(Json::parse(line.substr(6)));
    }
    found["is_whole"] = answer.body.ends_with("data: [DONE]\n\n");
  } else {
    parts.push_back(Json::parse(answer.body));
    found["is_whole"] = true;
  }
  for (const Json& part : parts) {
    if (part.contains("prompt_logprobs")) join(found["prompt_logprobs"], part["prompt_logprobs"]);
    for (const Json& choice : part["choices"]) {
      Json& all = found["choices"][choice["index"].dump()];
      for (const char* name :
           {"text", "logprobs", "finish_reason", "stop_reason", "token_ids", "prompt_logprobs"}) {
        if (choice.contains(name)) join(all[name], choice[name]);
      }
      const Json& message =
          choice.contains("delta") ? choice["delta"] : choice.value("message", Json::object());
      if (message.contains("content")) join(all["content"], message["content"]);
    }
  }
  return found;
}

Json ask(int port, const Call& call, const Json& speculative) {
  Json body = call.body;
  body["stream"] = call.streams;
  if (!speculative.is_null()) body["speculative"] = speculative;
  TestClient client(port);
  return answer_of(call, client.post(call.path(), body.dump()));
}

// The number of pages that the calls need together, at most, if no two share a page.
int64_t pages_of_demand(uint32_t seed) {
  int64_t pages = 0;
  for (int i = 0; i < kConcurrent; ++i) {
    const Call call = call_for(seed, i);
    const int64_t prompt = call.is_chat ? 120 : 100;  // tokens, at 500 bytes with about 4 bytes per token
    const int64_t entries = prompt + call.body["max_tokens"].get<int64_t>() + 8;
    pages += call.body.value("n", 1) * ((entries + kPageSize - 1) / kPageSize);
  }
  return pages;
}

class ServeMixHttp : public testing::TestWithParam<const char*> {};

TEST_P(ServeMixHttp, EveryCallGetsWhatItGetsAlone) {
  TestServer plain(serving(mix_options("None"), 0));
  ASSERT_TRUE(plain.wait_until_ready());
  for (uint32_t seed = 1; seed <= kSeeds; ++seed) {
    EngineOptions options = mix_options(GetParam());
    options.kv_pages = static_cast<int64_t>(kShareOfDemand * static_cast<double>(pages_of_demand(seed)));
    TestServer server(serving(options, /*preempt_every=*/1));
    ASSERT_TRUE(server.wait_until_ready());
    std::vector<Json> found(kConcurrent);
    std::latch start(kConcurrent);
    std::vector<std::thread> clients;
    for (int i = 0; i < kConcurrent; ++i) {
      clients.emplace_back([&, i] {
        const Call call = call_for(seed, i);
        start.arrive_and_wait();
        found[static_cast<size_t>(i)] = ask(server.port(), call, call.speculative);
      });
    }
    for (std::thread& client : clients) client.join();
    for (int i = 0; i < kConcurrent; ++i) {
      Call call = call_for(seed, i);
      call.streams = false;
      const Json alone = ask(plain.port(), call, {{"mode", "off"}});
      ASSERT_EQ(alone["status"], 200) << call.body;
      ASSERT_EQ(found[static_cast<size_t>(i)], alone)
          << GetParam() << ", seed " << seed << ", call " << i << ": " << call.body;
    }
    EXPECT_GT(server.metric("vllm:num_preemptions_total"), kConcurrent);
    EXPECT_GT(server.metric("vllm:prefix_cache_hits_total"), 0);
    // The policy auto drafts as much as the measured costs of this machine allow, possibly nothing.
    const double min = std::string(GetParam()) == "auto" ? -1 : 50;
    EXPECT_GT(server.metric("vllm:spec_decode_num_accepted_tokens_total"), min);
    EXPECT_TRUE(server.wait_until_free());
  }
}

INSTANTIATE_TEST_SUITE_P(Drafters, ServeMixHttp, testing::Values("DraftTarget", "auto"),
                         [](const auto& info) { return std::string(info.param); });

}  // namespace
}  // namespace outrider
