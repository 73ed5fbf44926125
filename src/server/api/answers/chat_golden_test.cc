// SPDX-License-Identifier: Apache-2.0
// Requests in OpenAI's format must be rendered as by transformers' apply_chat_template;
// tools/make_chat_goldens.py recorded its results.
#include <gtest/gtest.h>
#include <simdjson.h>

#include <ctime>
#include <map>

#include "server/api/answers/test_model.h"
#include "server/api/requests/chat_request.h"

namespace outrider {
namespace {

const std::string kFolder = std::string(OUTRIDER_SOURCE_DIR) + "/tests/data/chat/";

std::unique_ptr<TestServedModel> model_of(const std::string& family) {
  simdjson::dom::parser parser;
  const simdjson::dom::element golden = parser.load(kFolder + family + ".json");
  auto model = std::make_unique<TestServedModel>(std::string_view(golden["template"]));
  model->model().bos_token = "<s>";
  model->model().eos_token = "</s>";
  model->model().set_template(model->model().chat_template);
  return model;
}

// Replaces @DATE@ by the current date, which templates may print.
std::string with_date(std::string text) {
  constexpr std::string_view kPlace = "@DATE@";
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  char date[32];
  const size_t length = std::strftime(date, sizeof date, "%d %b %Y", &local);
  for (size_t at = 0; (at = text.find(kPlace)) != std::string::npos;)
    text.replace(at, kPlace.size(), date, length);
  return text;
}

// Whether the template cannot show the whole conversation, so that parts of it are rewritten. transformers
// drops such parts or refuses the conversation.
bool is_rewritten(const simdjson::dom::element& body, const TemplateAbilities& abilities) {
  simdjson::dom::element ignored;
  if (body["tools"].get(ignored) == simdjson::SUCCESS && !abilities.shows_tools) return true;
  std::string last = "system";
  for (const simdjson::dom::element message : simdjson::dom::array(body["messages"])) {
    const bool has_call = message["tool_calls"].get(ignored) == simdjson::SUCCESS ||
                          std::string_view(message["role"]) == "tool";
    const bool shows_calls = abilities.shows_calls && !abilities.needs_content && abilities.takes_any_id &&
                             abilities.shows_several_calls && abilities.shows_lone_results;
    if (has_call && !shows_calls) return true;
    const std::string_view role = message["role"];
    const bool is_system = role == "system" || role == "developer";
    if (is_system && !(abilities.shows_system && abilities.shows_late_system)) return true;
    const bool takes_turns = last != role && !(last == "system" && role == "assistant");
    if (!takes_turns && !abilities.shows_neighbours) return true;
    last = is_system ? "system" : role;
  }
  return false;
}

TEST(ChatGolden, RequestsRenderAsInTransformers) {
  std::map<std::string, std::unique_ptr<TestServedModel>> models;
  simdjson::dom::parser parser;
  const simdjson::dom::element golden = parser.load(kFolder + "openai_requests.json");
  int rendered = 0;
  for (const simdjson::dom::element entry : simdjson::dom::array(golden["cases"])) {
    const std::string_view family_name = entry["family"];
    const std::string_view case_name = entry["name"];
    const std::string family(family_name);
    SCOPED_TRACE(family + ": " + std::string(case_name));
    auto& model = models[family];
    if (model == nullptr) model = model_of(family);
    const std::string body = simdjson::minify(simdjson::dom::element(entry["body"]));
    const auto parsed = RequestBody::parse(body, 64);
    ASSERT_TRUE(parsed.ok()) << parsed.error().message;
    const auto prompt = make_chat_prompt(parsed->root(), model->model(), {});
    std::string_view output;
    if (is_rewritten(entry["body"], model->model().template_abilities)) continue;
    // A conversation that transformers refuses is rewritten.
    if (entry["output"].get(output) != simdjson::SUCCESS) continue;
    ASSERT_TRUE(prompt.ok()) << prompt.error().message;
    EXPECT_EQ(prompt->text, with_date(std::string(output)));
    ++rendered;
  }
  EXPECT_GE(rendered, 100);
}

}  // namespace
}  // namespace outrider
