// SPDX-License-Identifier: Apache-2.0
// Every field of requests that the openai and anthropic packages know (tools/list_client_fields.py), in
// values of all its types: it is taken, or refused with a reason.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "server/api/answers/test_model.h"

namespace outrider {
namespace {

using Json = nlohmann::json;

struct ClientRoute {
  const char* path;
  ParseFunction parse;
  const char* body;  // with all that is required
};

constexpr ClientRoute kClientRoutes[] = {
    {"/v1/chat/completions", parse_chat, R"({"messages":[{"role":"user","content":"x"}]})"},
    {"/v1/completions", parse_completion, R"({"prompt":"x"})"},
    {"/v1/responses", parse_responses, R"({"input":"x"})"},
    {"/v1/embeddings", parse_embeddings, R"({"input":"x"})"},
    {"/v1/messages", parse_messages, R"({"max_tokens":9,"messages":[{"role":"user","content":"x"}]})"},
};

Json listed_routes() {
  std::ifstream file(OUTRIDER_SOURCE_DIR "/tests/data/client_fields.json");
  return Json::parse(file)["routes"];
}

TEST(ClientFields, AreTakenOrRefusedWithAReason) {
  TestServedModel model;
  model.model().hidden_size = 4;
  const Json routes = listed_routes();
  size_t taken = 0, refused = 0;
  for (const ClientRoute& route : kClientRoutes) {
    ASSERT_TRUE(routes.contains(route.path)) << route.path;
    for (const auto& [field, values] : routes[route.path].items()) {
      if (field == "model") continue;  // the name of the one model
      for (const Json& value : values) {
        Json body = Json::parse(route.body);
        body[field] = value;
        if (field == "stream_options") body["stream"] = true;
        const auto call = parse_call(route.parse, body.dump(), model.context());
        call.ok() ? ++taken : ++refused;
        if (call.ok()) continue;
        const ApiError& error = call.error();
        const std::string about =
            std::string(route.path) + " " + field + " " + value.dump() + ": " + error.message;
        EXPECT_TRUE(error.status == 400 || error.status == 404) << about;
        EXPECT_TRUE(error.message.starts_with(error.param) && error.param.starts_with(field)) << about;
        EXPECT_EQ(error.message.find("is not known here"), std::string::npos) << about;
      }
    }
  }
  EXPECT_GT(taken, 300u);
  EXPECT_GT(taken, refused);
}

}  // namespace
}  // namespace outrider
