// SPDX-License-Identifier: Apache-2.0
#include "tests/serving/drafting_fixture.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/counter_rng.h"
#include "config/methods.h"

namespace outrider {

EngineOptions verifying_engine() {
  EngineOptions options = tiny_engine();
  options.offered_nodes = 16;
  return options;
}

void verify_for_clients(ServerParts& parts) {
  parts.options.drafting_nodes = verifying_engine().offered_nodes;
  parts.open = [] { return Engine::open(verifying_engine()); };
}

EngineOptions drafting_engine(const std::string& method) {
  EngineOptions options = tiny_engine();
  options.speculation.decoding_type = *find_method(method);
  options.speculation.max_draft_len = 4;
  if (method == "DraftTarget") options.speculation.speculative_model = options.model;
  return options;
}

DraftingParts drafting_parts(const std::string& method) {
  auto parts = open_drafting(drafting_engine(method));
  EXPECT_TRUE(parts.ok()) << parts.error().message;
  return std::move(parts).value();
}

EngineOptions with_head(EngineOptions options, const HeadCase& head, const std::filesystem::path& path) {
  options.speculation = {};
  options.speculation.decoding_type = head.method;
  options.speculation.max_draft_len = 4;
  options.speculation.speculative_model = path;
  return options;
}

EngineOptions with_suffix_and_head(EngineOptions options, const HeadCase& head,
                                   const std::filesystem::path& path) {
  options = with_head(std::move(options), head, path);
  options.speculation.decoding_type = Method::kCombined;
  options.speculation.combine = {Method::kSuffix, head.method};
  return options;
}

DraftingServer server_at(int port) {
  return {.host = "127.0.0.1", .port = std::to_string(port), .api_key = ""};
}

Request request_of(uint64_t number) {
  Request request;
  for (uint64_t i = 0; i < 3 + number % 9; ++i)
    request.prompt.push_back(static_cast<TokenId>(mix64(number ^ mix64(i)) % 200));
  request.max_tokens = 24 + static_cast<int64_t>(number % 20);
  request.ignore_eos = true;
  request.sampling.temperature = number % 2 == 0 ? 0.0 : 0.9;
  request.sampling.seed = number;
  request.sample_index = number % 3;
  if (number % 4 == 3) request.sampling.repetition_penalty = 1.2;
  if (number % 5 == 4) request.sampling.presence_penalty = 0.4;
  return request;
}

Completion local_completion(const Request& request) {
  static const std::unique_ptr<Engine> engine = [] {
    auto opened = Engine::open(tiny_engine());
    EXPECT_TRUE(opened.ok());
    return std::move(opened).value();
  }();
  auto completion = engine->generate(request);
  EXPECT_TRUE(completion.ok()) << completion.error().message;
  return *std::move(completion);
}

void expect_same_as_local(RemoteDecoder& decoder, const Request& request) {
  std::vector<TokenId> streamed;
  std::string text;
  const auto completion = decoder.generate(request, [&](RequestId, const Progress& progress) {
    streamed.insert(streamed.end(), progress.tokens.begin(), progress.tokens.end());
    text += progress.text;
  });
  ASSERT_TRUE(completion.ok()) << completion.error().message;
  const Completion local = local_completion(request);
  EXPECT_EQ(completion->tokens, local.tokens);
  EXPECT_EQ(completion->text, local.text);
  EXPECT_EQ(completion->finish_reason, local.finish_reason);
  EXPECT_EQ(streamed, local.tokens);
  EXPECT_EQ(text, local.text);
}

std::string refusal_of(RemoteDecoder& decoder, const Request& request) {
  const auto completion = decoder.generate(request, {});
  return completion.ok() ? "accepted" : completion.error().message;
}

HeadCase head_case(const std::string& name) {
  const std::vector<HeadCase> all = head_cases();
  return *std::ranges::find_if(all, [&](const HeadCase& head) { return head.name == name; });
}

RestartedServer::RestartedServer(const HeadCase& head) : head_(head), files_(head.make()) {
  files_->write();
  start(0);
  port_ = server_->port();
}

DraftingParts RestartedServer::parts_of_its_head() const {
  auto parts = open_drafting(with_head(tiny_engine(), head_, files_->path()));
  EXPECT_TRUE(parts.ok()) << parts.error().message;
  return std::move(parts).value();
}

void RestartedServer::start(int port) {
  server_ = std::make_unique<TestServer>([&](ServerParts& changed) {
    verify_for_clients(changed);
    changed.options.port = port;
    changed.open = [this] { return Engine::open(with_head(verifying_engine(), head_, files_->path())); };
  });
  EXPECT_TRUE(server_->wait_until_ready());
}

}  // namespace outrider
