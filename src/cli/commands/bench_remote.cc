// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "cli/commands/commands.h"
#include "cli/commands/remote_text.h"
#include "cli/prompt_set.h"
#include "cli/reports/completion_json.h"
#include "cli/reports/remote_bench_report.h"
#include "cli/terminal.h"
#include "loadtest/load_test_run.h"
#include "remote/network/known_networks.h"
#include "setup/open_engine.h"

namespace outrider {
namespace {

constexpr uint64_t kNetworkSeed = 1;

// Times the tokens of one output as they come.
class TokenClock {
 public:
  ProgressSink sink() {
    return [this](RequestId, const Progress& progress) { note(std::ssize(progress.tokens), now_ms()); };
  }
  void note(int64_t tokens, double at_ms) {
    if (tokens == 0) return;
    if (first_ms_) decoded_.tokens += tokens;
    if (!first_ms_) first_ms_ = at_ms;
    decoded_.ms = at_ms - *first_ms_;
  }
  void add_to(DecodeTime& sum) const {
    sum.tokens += decoded_.tokens;
    sum.ms += decoded_.ms;
  }

 private:
  std::optional<double> first_ms_;
  DecodeTime decoded_;
};

// The measurements of one drafter and server.
class RemoteBenchRun {
 public:
  RemoteBenchRun(const Settings& settings, DraftingParts& parts, DraftingServer server,
                 std::vector<PromptRecord> prompts)
      : settings_(settings), parts_(parts), server_(std::move(server)), prompts_(std::move(prompts)) {}

  Result<NetworkMeasurement> measure(const KnownNetwork& network);
  // Plain decoding on this machine, whose output must be the same.
  Result<DecodeTime> measure_local();

 private:
  Status draft(const DraftingServer& server, NetworkMeasurement& measured);
  Status check_output(size_t prompt, const std::vector<TokenId>& tokens);
  Status stream(const DraftingServer& server, NetworkMeasurement& measured) const;

  const Settings& settings_;
  DraftingParts& parts_;
  DraftingServer server_;
  std::vector<PromptRecord> prompts_;
  std::vector<std::vector<TokenId>> outputs_;  // by prompt, over the first network
};

Result<NetworkMeasurement> RemoteBenchRun::measure(const KnownNetwork& network) {
  OUTRIDER_TRY(const std::unique_ptr<ShapedProxy> proxy,
               ShapedProxy::start({.target_host = server_.host,
                                   .target_port = std::stoi(server_.port),
                                   .shape = network.shape,
                                   .seed = kNetworkSeed}));
  DraftingServer shaped = server_;
  shaped.host = "127.0.0.1";
  shaped.port = std::to_string(proxy->port());
  NetworkMeasurement measured{.network = std::string(network.name)};
  OUTRIDER_RETURN_IF_ERROR(draft(shaped, measured));
  OUTRIDER_RETURN_IF_ERROR(stream(shaped, measured));
  return measured;
}

Status RemoteBenchRun::draft(const DraftingServer& server, NetworkMeasurement& measured) {
  RemoteDecoder decoder(&parts_, server);
  decoder.set_state_type(state_type_of(settings_.remote));
  for (size_t i = 0; i < prompts_.size(); ++i) {
    Request request = settings_.request;
    request.prompt = parts_.tokenizer->encode(prompts_[i].turns.back());
    TokenClock clock;
    OUTRIDER_TRY(const Completion completion, decoder.generate(request, clock.sink()));
    clock.add_to(measured.drafted);
    measured.tokens += std::ssize(completion.tokens);
    measured.counts += decoder.counts();
    OUTRIDER_RETURN_IF_ERROR(check_output(i, completion.tokens));
  }
  return {};
}

// The text is the server's own, so no network changes it.
Status RemoteBenchRun::check_output(size_t prompt, const std::vector<TokenId>& tokens) {
  if (prompt == outputs_.size()) outputs_.push_back(tokens);
  if (outputs_[prompt] == tokens) return {};
  return input_error(fmt::format("prompt {}: expected the same output over every network, found another one",
                                 prompts_[prompt].id));
}

Result<DecodeTime> RemoteBenchRun::measure_local() {
  Settings settings = settings_;
  settings.engine.speculation = {};
  settings.engine.speculation.decoding_type = Method::kNone;
  OUTRIDER_TRY(const std::unique_ptr<Engine> engine, open_engine(settings));
  DecodeTime local;
  for (size_t i = 0; i < prompts_.size(); ++i) {
    Request request = settings_.request;
    request.prompt = engine->tokenize(prompts_[i].turns.back());
    TokenClock clock;
    OUTRIDER_TRY(const Completion completion, engine->generate(request, clock.sink()));
    clock.add_to(local);
    OUTRIDER_RETURN_IF_ERROR(check_output(i, completion.tokens));
  }
  return local;
}

// Asks the server for completions of these prompts, without speculation.
Status RemoteBenchRun::stream(const DraftingServer& server, NetworkMeasurement& measured) const {
  LoadTestPlan plan;
  plan.server = {.host = server.host, .port = server.port, .root = ""};
  plan.api_key = server.api_key;
  plan.endpoint = LoadTestEndpoint::kCompletions;
  plan.levels = {{.concurrency = 1}};
  plan.requests = std::ssize(prompts_);
  plan.max_tokens = settings_.request.max_tokens;
  plan.temperature = settings_.request.sampling.temperature;
  plan.ignore_eos = settings_.request.ignore_eos;
  plan.is_plain = true;
  for (const PromptRecord& prompt : prompts_)
    plan.prompts.push_back({.id = prompt.id, .turns = prompt.turns});
  OUTRIDER_TRY(const LoadTestOutcome outcome, run_load_test(plan, [](const LoadTestProgress&) {}));
  for (const AnswerRecord& answer : outcome.levels.front().requests) {
    if (!answer.succeeded())
      return io_error("the server failed to stream: " + answer.failure + answer.message);
    TokenClock clock;
    for (const ChunkArrival& arrival : answer.arrivals) clock.note(arrival.tokens, arrival.at_ms);
    clock.add_to(measured.streamed);
  }
  return {};
}

}  // namespace

Status run_bench_remote(const Settings& settings) {
  if (settings.remote.url.empty())
    return usage_error("expected the server's address: --server ws://127.0.0.1:8000");
  OUTRIDER_TRY(DraftingServer server, server_of(settings.remote));
  if (server.is_secure)
    return usage_error("bench remote shapes connections without TLS; expected a server of ws://");
  OUTRIDER_TRY(const EngineOptions options, complete_engine_options(settings));
  OUTRIDER_TRY(DraftingParts parts, open_drafting(options));
  OUTRIDER_TRY(std::vector<PromptRecord> prompts, load_prompts(settings));
  RemoteBench bench{.server = server.url(), .drafter = parts.info.drafter, .prompts = std::ssize(prompts)};
  RemoteBenchRun run(settings, parts, server, std::move(prompts));
  ProgressBar progress("bench remote", std::ssize(known_networks()) + 1);
  OUTRIDER_TRY(bench.local, run.measure_local());
  progress.advance();
  for (const KnownNetwork& network : known_networks()) {
    OUTRIDER_TRY(NetworkMeasurement measured, run.measure(network));
    bench.networks.push_back(std::move(measured));
    progress.advance();
  }
  write_output(settings.json ? json_line(remote_bench_json(bench)) : remote_bench_text(bench));
  return {};
}

}  // namespace outrider
