// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "server/generation_call.h"
#include "server/text_calls.h"

namespace outrider {
namespace {

using Json = nlohmann::json;

std::string event(const Json& json) {
  return "data: " + json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n\n";
}

class FakeCall : public GenerationCall {
 public:
  FakeCall(const Json& body, const Context& context) : id_(context.id) {
    streams_ = body.value("stream", false);
    Request request;
    request.prompt = context.model->tokenizer->encode(body.value("prompt", "a"));
    request.max_tokens = body.value("max_tokens", 16);
    request.ignore_eos = body.value("ignore_eos", false);
    request.sampling = context.model->sampling;
    request.sampling.seed = body.value("seed", 0);
    request.sampling.temperature = body.value("temperature", 0.0);
    request.cache_scope = context.cache_scope;
    const int n = body.value("n", 1);
    for (int i = 0; i < n; ++i) {
      request.stream = static_cast<uint64_t>(i);
      requests_.push_back(request);
    }
    texts_.resize(requests_.size());
    reasons_.resize(requests_.size());
    left_ = n;
  }
  std::vector<Request>& requests() override { return requests_; }
  bool streams() const override { return streams_; }
  bool wants_traces() const override { return false; }
  const std::vector<std::string>& ignored_fields() const override { return ignored_; }
  void start(std::string&) override {}
  void add(int choice, ChoiceNews news, std::string& events) override {
    const auto index = static_cast<size_t>(choice);
    texts_[index] += news.text;
    if (news.completion) {
      reasons_[index] = finish_reason_name(news.completion->finish_reason);
      --left_;
    }
    if (!streams_) return;
    Json json = {{"id", "cmpl-" + id_}, {"choices", Json::array({{{"index", choice}, {"text", news.text}}})}};
    if (news.completion) json["choices"][0]["finish_reason"] = reasons_[index];
    events += event(json);
    if (left_ == 0) events += "data: [DONE]\n\n";
  }
  std::string body() override {
    Json json = {{"id", "cmpl-" + id_}, {"choices", Json::array()}};
    for (size_t i = 0; i < texts_.size(); ++i) {
      json["choices"].push_back({{"index", i}, {"text", texts_[i]}, {"finish_reason", reasons_[i]}});
    }
    return json.dump(-1, ' ', false, Json::error_handler_t::replace);
  }

 private:
  std::string id_;
  bool streams_ = false;
  int left_ = 0;
  std::vector<Request> requests_;
  std::vector<std::string> texts_, reasons_, ignored_;
};

}  // namespace

ApiResult<std::unique_ptr<GenerationCall>> GenerationCall::parse(Endpoint, std::string_view body,
                                                                 const Context& context) {
  const Json json = Json::parse(body, nullptr, false);
  if (!json.is_object()) return ApiError{.message = "expected a JSON object"};
  return std::unique_ptr<GenerationCall>(new FakeCall(json, context));
}

std::string GenerationCall::error_event(const ApiError& error) {
  return "data: " + error_body(error) + "\n\n";
}

ApiResult<std::string> tokenize_answer(const ServedModel&, std::string_view body) {
  return std::string(body);
}
ApiResult<std::string> detokenize_answer(const ServedModel&, std::string_view body) {
  return std::string(body);
}
ApiResult<std::string> apply_template_answer(const ServedModel&, std::string_view body) {
  return std::string(body);
}

std::string error_body(const ApiError& error) {
  const Json json = {
      {"error",
       {{"message", error.message}, {"type", error.type}, {"param", nullptr}, {"code", error.code}}}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace outrider
