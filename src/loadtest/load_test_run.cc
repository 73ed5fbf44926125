// SPDX-License-Identifier: Apache-2.0
#include "loadtest/load_test_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/clock.h"
#include "base/counter_rng.h"
#include "base/quote.h"
#include "loadtest/answer_reader.h"
#include "loadtest/http_client.h"

namespace outrider {
namespace {

using Json = nlohmann::ordered_json;

// The stream_options that a server may accept, the most useful first.
enum class UsageOption : uint8_t { kContinuous, kFinal, kNone };

std::string request_body(const LoadTestPlan& plan, const std::string& model, const LoadTestPrompt& prompt,
                         int64_t max_tokens, uint64_t seed, UsageOption usage) {
  Json body = {{"model", model}};
  if (plan.endpoint == LoadTestEndpoint::kCompletions) {
    body["prompt"] = prompt.turns.back();
  } else {
    body["messages"] = Json::array();
    for (size_t i = 0; i < prompt.turns.size(); ++i) {
      const bool from_user = (prompt.turns.size() - i) % 2 == 1;
      body["messages"].push_back({{"role", from_user ? "user" : "assistant"}, {"content", prompt.turns[i]}});
    }
  }
  body["max_tokens"] = max_tokens;
  body["temperature"] = plan.temperature;
  body["seed"] = seed;
  if (plan.ignore_eos) body["ignore_eos"] = true;
  if (plan.is_plain) body["speculative"] = {{"mode", "off"}};
  body["stream"] = true;
  if (usage != UsageOption::kNone) body["stream_options"] = {{"include_usage", true}};
  if (usage == UsageOption::kContinuous) body["stream_options"]["continuous_usage_stats"] = true;
  return body.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Collects a whole response, for requests that are not measured.
struct PlainAnswer : HttpHandler {
  int status = 0;
  std::string body;
  HttpEnd end{HttpEndKind::kNotOpened, ""};

  void on_status(int code, std::string_view) override { status = code; }
  bool on_body(std::string_view bytes, double) override {
    constexpr size_t kMaxBytes = 64 << 20;
    body += bytes;
    return body.size() <= kMaxBytes;
  }
  void on_end(const HttpEnd& how, double) override { end = how; }
};

// The error message of the server, on one line.
std::string error_text(const std::string& body) {
  const Json json = Json::parse(body, nullptr, false);
  if (json.is_object() && json.contains("error")) {
    const Json& error = json["error"];
    if (error.is_string()) return printable(error.get<std::string>());
    if (error.is_object() && error.contains("message") && error["message"].is_string())
      return printable(error["message"].get<std::string>());
  }
  return printable(body);
}

// Measures one request.
class MeasuredCall : public HttpHandler {
 public:
  using Done = std::function<void(AnswerRecord)>;
  MeasuredCall(std::string prompt, double origin_ms, Done done)
      : origin_ms_(origin_ms), done_(std::move(done)), reader_(record_) {
    record_.prompt = std::move(prompt);
    record_.start_ms = now_ms() - origin_ms_;
  }

  void on_status(int status, std::string_view content_type) override {
    status_ = status;
    is_stream_ = status == 200 && content_type.starts_with("text/event-stream");
  }
  bool on_body(std::string_view bytes, double at_ms) override {
    constexpr size_t kMaxErrorBytes = 64 << 10;
    if (is_stream_) return reader_.feed(bytes, at_ms - origin_ms_);
    other_ += bytes.substr(0, kMaxErrorBytes - std::min(other_.size(), kMaxErrorBytes));
    return true;
  }
  void on_end(const HttpEnd& end, double at_ms) override {
    record_.end_ms = at_ms - origin_ms_;
    if (end.kind == HttpEndKind::kCancelled && record_.failure.empty()) {
      record_.is_interrupted = true;
    } else if (end.kind != HttpEndKind::kComplete && record_.failure.empty()) {
      record_.failure = end.kind == HttpEndKind::kNotOpened ? "no connection"
                        : end.kind == HttpEndKind::kTimeout ? "timeout"
                                                            : "connection broken";
      record_.message = end.message;
    } else if (status_ != 200) {
      record_.failure = std::to_string(status_);
      record_.message = error_text(other_);
    } else if (!is_stream_) {
      record_.failure = "no event stream";
      record_.message = printable(other_);
    }
    reader_.finish();
    done_(std::move(record_));
  }

 private:
  double origin_ms_;
  Done done_;
  AnswerRecord record_;
  AnswerReader reader_;
  int status_ = 0;
  bool is_stream_ = false;
  std::string other_;  // the body, if it is no event stream
};

class LoadTestRunner {
 public:
  LoadTestRunner(const LoadTestPlan& plan, HttpClient& client,
                 const std::function<void(const LoadTestProgress&)>& on_progress)
      : plan_(plan), client_(client), on_progress_(on_progress) {}

  Result<LoadTestOutcome> run() {
    OUTRIDER_RETURN_IF_ERROR(find_model());
    OUTRIDER_RETURN_IF_ERROR(probe());
    outcome_.model = model_;
    if (plan_.warmup > 0 && !is_stopped_) {
      run_level(plan_.levels.front(), plan_.warmup, 0);
    }
    for (const LoadTestLevel& level : plan_.levels) {
      if (is_stopped_) break;
      outcome_.levels.push_back(measure_level(level));
    }
    outcome_.is_interrupted = is_stopped_;
    return std::move(outcome_);
  }

 private:
  PlainAnswer ask(HttpRequest request) {
    auto answer = std::make_shared<PlainAnswer>();
    client_.send(std::move(request), answer);
    wait();
    return std::move(*answer);
  }

  void wait() {
    client_.run([this] {
      is_stopped_ = true;
      client_.cancel_all();
    });
  }

  Error unusable(const std::string& what) const {
    return io_error(fmt::format("{}: {}", plan_.server.text(), what));
  }

  Status find_model() {
    model_ = plan_.model;
    if (!model_.empty()) return {};
    const PlainAnswer answer = ask({.path = "/v1/models"});
    if (answer.end.kind != HttpEndKind::kComplete)
      return unusable(fmt::format("{}; is the server running?", answer.end.message));
    if (answer.status == 401 || answer.status == 403)
      return unusable(
          fmt::format("{}: {}; --api-key-file gives the key", answer.status, error_text(answer.body)));
    const Json json = Json::parse(answer.body, nullptr, false);
    const Json::json_pointer first("/data/0/id");
    if (answer.status != 200 || json.is_discarded() || !json.contains(first) || !json[first].is_string()) {
      return unusable(
          fmt::format("expected a list of models at /v1/models, found {} {}; --served-model-name names one",
                      answer.status, quote(answer.body)));
    }
    model_ = json[first].get<std::string>();
    return {};
  }

  // Requests a short answer, to learn whether the server can be measured and which stream_options it accepts.
  Status probe() {
    constexpr int64_t kTokens = 4;
    for (const UsageOption usage : {UsageOption::kContinuous, UsageOption::kFinal, UsageOption::kNone}) {
      usage_ = usage;
      AnswerRecord record;
      begin(plan_.prompts.front(), std::min(plan_.max_tokens, kTokens), 0, now_ms(),
            [&](AnswerRecord done) { record = std::move(done); });
      wait();
      if (record.succeeded() || is_stopped_) return {};
      const bool may_be_the_option = record.failure == "400" || record.failure == "422";
      if (may_be_the_option && usage != UsageOption::kNone) continue;
      return unusable(
          fmt::format("expected a streamed answer, found {}: {}", record.failure, record.message));
    }
    return {};
  }

  void begin(const LoadTestPrompt& prompt, int64_t max_tokens, uint64_t seed_offset, double origin_ms,
             MeasuredCall::Done done) {
    const bool is_chat = plan_.endpoint == LoadTestEndpoint::kChat;
    HttpRequest request = {
        .method = "POST",
        .path = is_chat ? "/v1/chat/completions" : "/v1/completions",
        .body = request_body(plan_, model_, prompt, max_tokens, plan_.seed + seed_offset, usage_),
        .timeout_ms = 1e3 * plan_.timeout_s};
    client_.send(std::move(request), std::make_shared<MeasuredCall>(prompt.id, origin_ms, std::move(done)));
  }

  LevelRecord measure_level(const LoadTestLevel& level) {
    int64_t requests = plan_.requests;
    if (requests == 0 && plan_.duration_s == 0)
      requests = std::max<int64_t>(static_cast<int64_t>(plan_.prompts.size()), 4 * level.concurrency);
    const auto before = scrape();
    run_level(level, requests, plan_.duration_s);
    const auto after = is_stopped_ ? std::nullopt : scrape();
    if (before && after) record_.server_speculation = difference(*before, *after);
    return std::move(record_);
  }

  // Begins requests until their number is `requests` (0: no limit) or `duration_s` is over (0: no limit).
  void run_level(const LoadTestLevel& level, int64_t requests, double duration_s) {
    record_ = {.level = level};
    wanted_ = requests;
    duration_ms_ = 1e3 * duration_s;
    begun_ = running_ = 0;
    origin_ms_ = now_ms();
    if (level.concurrency > 0) {
      for (int i = 0; i < level.concurrency; ++i) begin_next();
    } else {
      client_.after(0, [this] { arrive(); });
    }
    wait();
    for (const AnswerRecord& request : record_.requests)
      record_.duration_ms = std::max(record_.duration_ms, request.end_ms);
  }

  bool may_begin() const {
    const bool is_late = duration_ms_ > 0 && now_ms() - origin_ms_ >= duration_ms_;
    return !is_stopped_ && !is_late && (wanted_ == 0 || begun_ < wanted_);
  }

  void begin_next() {
    if (!may_begin()) return;
    const auto index = static_cast<size_t>(begun_++);
    record_.peak_concurrency = std::max(record_.peak_concurrency, ++running_);
    record_.requests.emplace_back();
    begin(plan_.prompts[index % plan_.prompts.size()], plan_.max_tokens, index, origin_ms_,
          [this, index](AnswerRecord done) {
            const bool failed = !done.succeeded();
            record_.requests[index] = std::move(done);
            --running_;
            report();
            if (record_.level.concurrency == 0) return;
            // The pause keeps a server that refuses at once from being flooded.
            constexpr double kPauseMs = 10;
            failed ? client_.after(kPauseMs, [this] { begin_next(); }) : begin_next();
          });
  }

  // Begins the next request, and schedules the one after it by a Poisson process.
  void arrive() {
    begin_next();
    if (!may_begin()) return;
    const double wait_s =
        random_exponential({.seed = plan_.seed, .position = begun_}) / record_.level.request_rate;
    next_ms_ = (begun_ == 1 ? 0 : next_ms_) + 1e3 * wait_s;
    client_.after(std::max(0.0, next_ms_ - (now_ms() - origin_ms_)), [this] { arrive(); });
  }

  void report() const {
    const auto finished = static_cast<double>(begun_ - running_);
    double done = wanted_ > 0 ? finished / static_cast<double>(wanted_) : 0;
    if (duration_ms_ > 0) done = std::max(done, std::min(1.0, (now_ms() - origin_ms_) / duration_ms_));
    on_progress_({record_.level, done});
  }

  std::optional<SpeculationCounts> scrape() {
    const PlainAnswer answer = ask({.path = "/metrics"});
    if (answer.status != 200 || answer.end.kind != HttpEndKind::kComplete) return std::nullopt;
    return speculation_of_metrics(answer.body);
  }

  static SpeculationCounts difference(const SpeculationCounts& before, SpeculationCounts after) {
    after.steps -= before.steps;
    after.drafted -= before.drafted;
    after.accepted -= before.accepted;
    const size_t positions =
        std::min(before.accepted_per_position.size(), after.accepted_per_position.size());
    for (size_t i = 0; i < positions; ++i) after.accepted_per_position[i] -= before.accepted_per_position[i];
    return after;
  }

  const LoadTestPlan& plan_;
  HttpClient& client_;
  const std::function<void(const LoadTestProgress&)>& on_progress_;
  std::string model_;
  UsageOption usage_ = UsageOption::kContinuous;
  bool is_stopped_ = false;
  LoadTestOutcome outcome_;
  // State of the current level:
  LevelRecord record_;
  int64_t wanted_ = 0, begun_ = 0;
  int running_ = 0;
  double duration_ms_ = 0, origin_ms_ = 0;
  double next_ms_ = 0;  // time of the next arrival, relative to origin_ms_
};

}  // namespace

Result<LoadTestOutcome> run_load_test(const LoadTestPlan& plan,
                                      const std::function<void(const LoadTestProgress&)>& on_progress) {
  OUTRIDER_TRY(const std::unique_ptr<HttpClient> client, HttpClient::open(plan.server, plan.api_key));
  return LoadTestRunner(plan, *client, on_progress).run();
}

}  // namespace outrider
