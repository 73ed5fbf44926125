// SPDX-License-Identifier: Apache-2.0
#include "server/telemetry/server_metrics.h"

namespace outrider {
namespace {

// vLLM's bounds, so that its dashboards work.
constexpr auto kFirstToken = std::to_array<double>(
    {.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560});
constexpr auto kInterToken = std::to_array<double>(
    {.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80});
constexpr auto kLatency = std::to_array<double>(
    {.3, .5, .8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680});
constexpr auto kTokens = std::to_array<double>(
    {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000});

double real(int64_t count) { return static_cast<double>(count); }

void add_load(MetricsText& text, const ServerMetrics::Now& now) {
  const EngineStatus& engine = now.engine;
  text.gauge("vllm:num_requests_running", "Sequences in the batch.", engine.running);
  text.gauge("vllm:num_requests_waiting", "Requests that wait for their place in the batch.",
             engine.waiting + now.waiting_calls);
  text.gauge("vllm:kv_cache_usage_perc", "Pages in use, 1 is all of them.",
             engine.pages == 0 ? 0 : real(engine.used_pages) / real(engine.pages));
  text.gauge("outrider:kv_pages", "Pages of the KV cache.", real(engine.pages));
  text.gauge("outrider:prefix_cache_pages", "Pages of finished sequences, kept for prompts that begin alike.",
             real(engine.cached_pages));
  text.counter("vllm:prefix_cache_queries", "Prompt tokens looked up in the prefix cache.",
               real(engine.prompt_tokens));
  text.counter("vllm:prefix_cache_hits", "Prompt tokens found in the prefix cache.",
               real(engine.cached_tokens));
  text.counter("vllm:num_preemptions", "Sequences that gave their pages back and were computed again.",
               real(engine.preemptions));
  text.counter("vllm:prompt_tokens", "Prompt tokens of all requests.", real(engine.prompt_tokens));
  text.counter("vllm:generation_tokens", "Tokens committed.", real(engine.output_tokens));
  text.counter("outrider:steps", "Target passes.", real(engine.steps));
  text.counter("outrider:rows", "Rows of all target passes.", real(engine.rows));
  text.gauge("outrider:connections", "Open connections.", now.connections);
}

// The names and meanings that Prometheus' client libraries give to every program.
void add_process(MetricsText& text, const ProcessUsage& process) {
  text.counter("process_cpu_seconds", "Time of all threads, user and system.", process.cpu_seconds);
  text.gauge("process_start_time_seconds", "Start of the process, in Unix time.", process.start_time);
  text.gauge("process_resident_memory_bytes", "Resident memory.", real(process.resident_bytes));
  text.gauge("process_virtual_memory_bytes", "Virtual memory.", real(process.virtual_bytes));
  text.gauge("process_open_fds", "Open file descriptors.", real(process.open_files));
  text.gauge("process_max_fds", "The most file descriptors that may be open.", real(process.max_files));
  text.begin_gauge("outrider_build_info", "1, with the version of the program as label.");
  text.add({{"version", OUTRIDER_VERSION}}, 1);
}

void add_speculation(MetricsText& text, const EngineStatus& engine) {
  const SpeculationStats& stats = engine.speculation;
  text.counter("vllm:spec_decode_num_drafts",
               "Drafts verified: target passes of a sequence with drafted tokens.", real(stats.drafts));
  text.counter("vllm:spec_decode_num_draft_tokens", "Drafted tokens verified.", real(stats.drafted));
  text.counter("vllm:spec_decode_num_accepted_tokens", "Drafted tokens committed.", real(stats.accepted));
  text.begin_counter("vllm:spec_decode_num_accepted_tokens_per_pos", "Drafted tokens committed, by depth.");
  for (size_t i = 0; i < stats.accepted_per_position.size(); ++i) {
    text.add({{"position", std::to_string(i)}}, real(stats.accepted_per_position[i]));
  }
  text.begin_counter("outrider:spec_decode_num_draft_tokens_per_pos", "Drafted tokens verified, by depth.");
  for (size_t i = 0; i < stats.drafted_per_position.size(); ++i) {
    text.add({{"position", std::to_string(i)}}, real(stats.drafted_per_position[i]));
  }
  text.counter("outrider:draft_seconds", "Time spent drafting.", stats.draft_ms / 1e3);
  text.counter("outrider:verify_seconds", "Time spent in target passes, acceptance and commit.",
               stats.verify_ms / 1e3);
  text.counter("outrider:draft_failures", "Calls of the drafter that failed; decoded plainly instead.",
               real(stats.draft_failures));
  text.counter("outrider:foreseen_drafts",
               "Drafts that ranks had made while the target verified, before they were asked for.",
               real(engine.foreseen_drafts));
  text.gauge("outrider:speculation_speedup_ratio",
             "Tokens per second against plain decoding, of late; 0: not known.", engine.speedup);
}

void add_device(MetricsText& text, const DeviceOrders& device) {
  text.counter("outrider:device_launches", "Launches of kernels on the target's device, one by one.",
               real(device.launches));
  text.counter("outrider:device_lists", "Recorded lists of launches that ran there.", real(device.lists));
  text.begin_counter("outrider:device_bytes", "Bytes copied to and from that device.");
  text.add({{"direction", "to"}}, real(device.bytes_to));
  text.add({{"direction", "from"}}, real(device.bytes_from));
  text.counter("outrider:device_allocations", "Allocations of its memory.", real(device.allocations));
  text.counter("outrider:device_waited_seconds", "Time in which the engine waited for that device.",
               device.waited_ms / 1000);
}

}  // namespace

void add_batches(MetricsText& text, const BatchFigures& figures) {
  text.begin_gauge("outrider:batches", "Batches, by status.");
  for (const auto& [status, count] : figures.batches)
    text.add({{"status", std::string(status)}}, real(count));
  text.begin_counter("outrider:batch_lines", "Lines of batches with a result.");
  text.add({{"result", "completed"}}, real(figures.completed));
  text.add({{"result", "failed"}}, real(figures.failed));
  text.gauge("outrider:batch_lines_running", "Lines of batches that run.", real(figures.running));
}

void add_audit_lost(MetricsText& text, int64_t lines) {
  text.counter("outrider:audit_lines_lost", "Lines of the audit log that could not be written.", real(lines));
}

ServerMetrics::ServerMetrics()
    : first_token_(kFirstToken),
      inter_token_(kInterToken),
      end_to_end_(kLatency),
      queue_(kLatency),
      prefill_(kLatency),
      decode_(kLatency),
      inference_(kLatency),
      prompt_tokens_(kTokens),
      output_tokens_(kTokens) {}

void ServerMetrics::on_completion(const Completion& completion) {
  ++finished_[static_cast<size_t>(completion.finish_reason)];
  queue_.observe(completion.queue_ms / 1e3);
  prefill_.observe(completion.prompt_ms / 1e3);
  decode_.observe(completion.decode_ms / 1e3);
  inference_.observe((completion.prompt_ms + completion.decode_ms) / 1e3);
  prompt_tokens_.observe(real(completion.prompt_tokens));
  output_tokens_.observe(real(static_cast<int64_t>(completion.tokens.size())));
}

void ServerMetrics::add_requests(MetricsText& text) const {
  text.begin_counter("vllm:request_success", "Finished sequences.");
  for (const FinishReason reason :
       {FinishReason::kStop, FinishReason::kLength, FinishReason::kCancelled, FinishReason::kError}) {
    const bool is_cancelled = reason == FinishReason::kCancelled;
    text.add({{"finished_reason", is_cancelled ? "abort" : std::string(finish_reason_name(reason))}},
             real(finished_[static_cast<size_t>(reason)]));
  }
  text.histogram("vllm:time_to_first_token_seconds", "From the request to its first token.", first_token_);
  text.histogram("vllm:inter_token_latency_seconds", "Between tokens; those of one step share its time.",
                 inter_token_);
  text.histogram("vllm:e2e_request_latency_seconds", "From the request to its last token.", end_to_end_);
  text.histogram("vllm:request_queue_time_seconds", "Waiting for a place in the batch.", queue_);
  text.histogram("vllm:request_prefill_time_seconds", "Computing the prompt.", prefill_);
  text.histogram("vllm:request_decode_time_seconds", "Computing the output.", decode_);
  text.histogram("vllm:request_inference_time_seconds", "Computing prompt and output.", inference_);
  text.histogram("vllm:request_prompt_tokens", "Tokens of a prompt.", prompt_tokens_);
  text.histogram("vllm:request_generation_tokens", "Tokens of an output.", output_tokens_);
}

void ServerMetrics::on_key(const std::string& key, const CallTotals& totals) {
  KeyTotals& sum = keys_[key];
  ++sum.calls;
  sum.prompt_tokens += totals.prompt_tokens;
  sum.output_tokens += totals.output_tokens;
}

void ServerMetrics::add_keys(MetricsText& text) const {
  if (keys_.empty()) return;
  text.begin_counter("outrider:key_requests", "Calls that ended, by the name of their key.");
  for (const auto& [key, sum] : keys_) text.add({{"key", key}}, real(sum.calls));
  text.begin_counter("outrider:key_prompt_tokens", "Prompt tokens, by the name of the key.");
  for (const auto& [key, sum] : keys_) text.add({{"key", key}}, real(sum.prompt_tokens));
  text.begin_counter("outrider:key_generation_tokens", "Output tokens, by the name of the key.");
  for (const auto& [key, sum] : keys_) text.add({{"key", key}}, real(sum.output_tokens));
}

void ServerMetrics::add_connections(MetricsText& text, const Now& now) const {
  text.begin_counter("outrider:responses", "Answers, by HTTP status.");
  for (const auto& [status, count] : responses_) text.add({{"status", std::to_string(status)}}, real(count));
  text.begin_counter("outrider:dropped_connections", "Connections closed on their client.");
  for (size_t i = 0; i < drops_.size(); ++i)
    text.add({{"reason", std::string(kDropReasons[i])}}, real(drops_[i]));
  text.counter("outrider:disconnected_requests", "Requests whose client went away before the end.",
               real(disconnects_));
  text.gauge("outrider:drafting_sessions", "Sessions of clients that draft.", now.drafting_sessions);
  text.gauge("outrider:drafting_connections", "Connections of clients that draft.",
             real(drafting_connections_));
  text.counter("outrider:drafting_connects", "Connections that clients that draft have made.",
               real(drafting_connects_));
  text.counter("outrider:drafting_resumes", "Sessions that went on over a new connection.",
               real(drafting_resumes_));
  text.begin_counter("outrider:drafting_bytes", "Payloads of the drafting protocol, from and to clients.");
  text.add({{"direction", "in"}}, real(drafting_in_));
  text.add({{"direction", "out"}}, real(drafting_out_));
}

std::string ServerMetrics::text(const Now& now) const {
  MetricsText text({{"model_name", now.model}, {"engine", "0"}});
  add_load(text, now);
  add_speculation(text, now.engine);
  if (now.engine.device) add_device(text, *now.engine.device);
  add_requests(text);
  add_keys(text);
  add_connections(text, now);
  if (now.batches) add_batches(text, *now.batches);
  if (now.audit_lost) add_audit_lost(text, *now.audit_lost);
  MetricsText of_process(MetricsText::Labels{});
  add_process(of_process, now.process);
  return text.text() + of_process.text();
}

}  // namespace outrider
