// SPDX-License-Identifier: Apache-2.0
#include "server/server.h"

#include <fmt/format.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <memory>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/log.h"
#include "engine/engine_parts.h"
#include "open/default_sampling.h"
#include "platform/machine_memory.h"
#include "platform/machine_names.h"
#include "remote/protocol/vocabulary.h"
#include "server/access/tls_context.h"
#include "server/api/served_adapters.h"
#include "server/http/gate.h"
#include "server/http/listener.h"
#include "server/http/router.h"
#include "server/http/service.h"
#include "server/notify.h"

namespace outrider {
namespace {

namespace asio = boost::asio;
using Code = boost::system::error_code;

constexpr auto kPollInterval = std::chrono::milliseconds(10);

Service make_service(ServerParts& parts, ApiKeys keys, std::shared_ptr<asio::ssl::context> tls) {
  const LiveCalls::Limits calls{.calls = parts.max_batch + parts.options.max_queue,
                                .stream_bytes = parts.limits.stream_bytes};
  return {.options = parts.options,
          .limits = parts.limits,
          .hosts = AllowedHosts(parts.options.host, parts.options.allowed_hosts, machine_names()),
          .keys = std::move(keys),
          .fleet_key = FleetKey(parts.fleet_key),
          .tls = std::move(tls),
          .chat_html = std::move(parts.chat_html),
          .load_stage = parts.load_stage,
          .responses = ResponseStore(static_cast<size_t>(parts.options.response_memory) << 20),
          .model = {},
          .vocabulary = {},
          .metrics = {},
          .quotas = nullptr,
          .traces = nullptr,
          .audit = nullptr,
          .calls = LiveCalls(calls),
          .drafting = {},
          .workers = nullptr,
          .engine = nullptr,
          .fleet = nullptr,
          .max_batch = parts.max_batch};
}

int64_t unix_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

ServedModel model_to_serve(const Engine& engine, const ServerParts& parts,
                           std::function<Status(std::function<Status(Engine&)> task)> on_engine) {
  ServedModel model = served_model(engine.parts());
  model.name = parts.model_name;
  model.aliases = parts.model_aliases;
  model.created = std::time(nullptr);
  model.template_values = parts.template_values;
  model.thinking_budget = parts.thinking_budget;
  model.thinking_message = parts.thinking_message;
  model.pooling = parts.options.pooling;
  model.sampling =
      default_sampling(parts.sampling, parts.sampling_choices, engine.parts().target->config().sampling);
  model.adapters =
      std::make_shared<ServedAdapters>(engine.adapters(), parts.options.adapter_folder, std::move(on_engine));
  if (parts.chat_template) model.set_template(&*parts.chat_template);
  if (!model.template_problem.empty()) log_warning(model.template_problem);
  return model;
}

// A coroutine that waits when a server is destroyed has guards that use the server. They run here, before
// anything that they use is gone.
class ServerContext : public asio::io_context {
 public:
  ServerContext() : asio::io_context(1) {}
  void destroy_handlers() { shutdown(); }
};

struct Server::Impl {
  Impl(ServerParts given, ApiKeys keys, std::shared_ptr<asio::ssl::context> tls)
      : parts(std::move(given)),
        service(make_service(parts, std::move(keys), std::move(tls))),
        listener(&io, &service),
        signals(io) {
    const ServerOptions& options = service.options;
    if (options.requests_per_minute > 0 || options.tokens_per_minute > 0) {
      service.quotas = std::make_unique<KeyQuotas>(
          KeyQuotas::Limits{.requests = options.requests_per_minute, .tokens = options.tokens_per_minute});
    }
    service.calls.set_metrics(&service.metrics);
    service.calls.set_quotas(service.quotas.get());
    if (parts.fleet) service.fleet = std::make_unique<Fleet>(&io, *parts.fleet);
    service.started_ms = now_ms();
  }
  ~Impl() {
    if (service.batches) service.batches->stop();
    if (service.engine) service.engine->stop();
    if (service.workers) service.workers->stop();
    io.destroy_handlers();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  EngineLoop::Events engine_events();
  // Runs handlers until there are no more. One that throws ends what it belongs to.
  void run_handlers();
  void on_opened(ServedModel model);
  Status open_batches();
  void start_batches();
  void start_fleet();
  void start_fleet_batches();
  // Errors: the address of the collector has another form; its headers or certificates are wrong.
  Status collect_traces();
  // Opens the audit log, whose first line says where the server listens.
  Status begin_audit(const std::string& url);
  void audit(AuditRecord record) const;
  void on_failure(const Error& error);
  void on_drain();
  Connection::Task<void> drain();
  Connection::Task<void> wait_while(std::function<bool()> condition, Connection::Duration time);
  Connection::Task<void> take_signals();
  void reload();
  void reload_or_keep();
  void reopen_audit_log();
  void read_models();
  void take_models(Result<std::vector<FleetModel>> models);
  void read_keys();
  void read_certificate();

  ServerParts parts;
  ServerContext io;
  Service service;
  Listener listener;
  asio::signal_set signals;
  bool is_aborted = false;
  bool is_stopped = false;
  std::optional<Error> failure;
};

EngineLoop::Events Server::Impl::engine_events() {
  return {.opened =
              [this](const Engine& engine) {
                auto on_engine = [this](std::function<Status(Engine&)> task) {
                  return service.engine->run_between_steps(std::move(task));
                };
                asio::post(io, [this, model = model_to_serve(engine, parts, on_engine)]() mutable {
                  try {
                    on_opened(std::move(model));
                  } catch (const std::exception& error) {
                    on_failure(io_error(error.what()));
                  }
                });
              },
          .failed = [this](const Error& error) { asio::post(io, [this, error] { on_failure(error); }); },
          .has_updates =
              [this] { asio::post(io, [this] { service.calls.deliver(service.engine->take_updates()); }); }};
}

void Server::Impl::run_handlers() {
  while (true) {
    try {
      if (!io.stopped()) listener.start();
      io.run();
      return;
    } catch (const std::exception&) {
      log_failure("handler_failed", std::current_exception());
    }
  }
}

void Server::Impl::on_opened(ServedModel model) {
  service.model = std::move(model);
  if (service.options.drafting_nodes > 0) service.vocabulary = fingerprint_of(*service.model.tokenizer);
  if (service.phase != Phase::kLoading) return;
  service.limits.fit_to_memory(
      static_cast<size_t>(std::max<int64_t>(machine_memory() - resident_memory(), 0)));
  service.phase = Phase::kReady;
  start_batches();
  audit({.action = "model_loaded", .subject = parts.model_name});
  const std::string note = parts.ready_note && !parts.ready_note->empty() ? "; " + *parts.ready_note : "";
  log_event("ready", fmt::format("{} after {:.1f} s{}", parts.model_name,
                                 (now_ms() - service.started_ms) / 1e3, note));
  notify_manager(parts.notify_socket, "READY=1\nSTATUS=serving " + parts.model_name);
}

Status Server::Impl::collect_traces() {
  const std::string& endpoint = service.options.traces_endpoint;
  if (endpoint.empty()) return {};
  OUTRIDER_TRY(CollectorAddress address, CollectorAddress::parse(endpoint));
  OUTRIDER_TRY(TraceCollector collector, TraceCollector::open(&io, std::move(address), parts.collector));
  service.traces = std::make_unique<TraceExporter>(&io, std::move(collector));
  service.calls.set_traces(service.traces.get());
  asio::co_spawn(io, service.traces->run(), [](const std::exception_ptr& failure) {
    if (failure != nullptr) log_failure("traces_failed", failure);
  });
  return {};
}

Status Server::Impl::begin_audit(const std::string& url) {
  if (service.options.audit_log.empty()) return {};
  OUTRIDER_TRY(service.audit, AuditLog::open(service.options.audit_log));
  if (service.fleet != nullptr) service.fleet->set_audit(service.audit.get());
  return service.audit->add({.action = "start", .detail = url + ", version " OUTRIDER_VERSION});
}

void Server::Impl::audit(AuditRecord record) const {
  if (service.audit == nullptr) return;
  [[maybe_unused]] const Status written = service.audit->add(record);  // the log tells of lost lines
}

Status Server::Impl::open_batches() {
  if (service.options.batch_folder.empty()) return {};
  constexpr size_t kForm = 64 << 10;  // bytes around the file in an upload
  Batches::Limits limits;
  limits.files.all_bytes = int64_t{service.options.batch_folder_size} << 20;
  service.limits.upload_bytes = static_cast<size_t>(limits.files.file_bytes) + kForm;
  OUTRIDER_TRY(service.batches, Batches::open(service.options.batch_folder, limits, unix_ms));
  return {};
}

// Lines run on the engine's thread, and the I/O thread hands them over.
void Server::Impl::start_batches() {
  if (service.batches == nullptr) return;
  service.lines = std::make_unique<LineCalls>(&service.calls, service.engine.get());
  const LineContext context{
      .model = &service.model, .responses = &service.responses, .limits = api_limits(service)};
  StartPrepared start = [this](const std::string& id, std::unique_ptr<GenerationCall> generation,
                               LineCalls::Done done) {
    asio::post(io, [this, id, generation = std::move(generation), done = std::move(done)]() mutable {
      service.lines->start(id, std::move(generation), /*in_background=*/true, std::move(done));
    });
  };
  service.batches->start({.places = service.max_batch,
                          .start = prepare_and(std::move(start), context),
                          .cancel = [this](const std::string& id) {
                            asio::post(io, [this, id] { service.lines->cancel(id); });
                          }});
}

// Engines prepare the lines of their models.
void Server::Impl::start_fleet_batches() {
  if (service.batches == nullptr) return;
  service.fleet_lines = std::make_unique<FleetLines>(&io, service.fleet.get());
  service.batches->start(
      {.places = service.max_batch,
       .start =
           [this](const BatchLine& line, const std::string& id, uint64_t scope, const LineCalls::Done& done) {
             asio::post(io,
                        [this, line, id, scope, done] { service.fleet_lines->start(line, id, scope, done); });
           },
       .cancel =
           [this](const std::string& id) {
             asio::post(io, [this, id] { service.fleet_lines->cancel(id); });
           }});
}

// A fleet takes requests before any engine runs.
void Server::Impl::start_fleet() {
  service.fleet->start();
  service.phase = Phase::kReady;
  start_fleet_batches();
  const size_t count = service.fleet->members().size();
  log_event("ready", service.fleet->summary());
  notify_manager(parts.notify_socket, fmt::format("READY=1\nSTATUS=serving {} models", count));
}

void Server::Impl::on_failure(const Error& error) {
  failure = error;
  is_aborted = true;
  if (service.phase != Phase::kDraining) on_drain();
  service.calls.abort_all(
      {.status = 500, .type = "server_error", .message = "the engine failed", .code = "engine_failed"},
      nullptr);
}

void Server::Impl::on_drain() {
  if (service.phase == Phase::kDraining) {
    is_aborted = true;
    return;
  }
  service.phase = Phase::kDraining;
  // A later start goes on with lines of batches.
  if (service.lines != nullptr) service.lines->close();
  if (service.fleet_lines != nullptr) service.fleet_lines->close();
  log_event("draining", fmt::format("{} calls", service.calls.load()));
  notify_manager(parts.notify_socket, "STOPPING=1");
  asio::co_spawn(io, drain(), [this](const std::exception_ptr& failure) {
    if (failure == nullptr) return;
    log_failure("drain_failed", failure);
    io.stop();
  });
}

Connection::Task<void> Server::Impl::wait_while(std::function<bool()> condition, Connection::Duration time) {
  const auto end = Connection::Clock::now() + time;
  asio::steady_timer timer(io);
  while (condition() && Connection::Clock::now() < end) {
    timer.expires_after(kPollInterval);
    Code ignored;
    co_await timer.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }
}

Connection::Task<void> Server::Impl::drain() {
  const auto drain_time = std::chrono::duration_cast<Connection::Duration>(
      std::chrono::duration<double>(service.options.drain_timeout));
  std::function<bool()> is_working = [this] {
    const bool has_forwarded = service.fleet != nullptr && service.fleet->running() > 0;
    return (!service.calls.empty() || has_forwarded) && !is_aborted;
  };
  co_await wait_while(std::move(is_working), drain_time);
  if (!service.calls.empty() && !failure) {
    ApiError error{.status = 503,
                   .type = "unavailable_error",
                   .message = "the server is shutting down",
                   .code = "draining"};
    service.calls.abort_all(error, service.engine.get());
  }
  if (service.fleet != nullptr) co_await service.fleet->stop();
  listener.stop();
  std::function<bool()> is_open = [this] { return listener.size() > 0; };
  co_await wait_while(is_open, service.limits.close_time);
  listener.close_all();
  co_await wait_while(is_open, service.limits.close_time);
  // The engine tells of the end of each call that was cancelled.
  std::function<bool()> is_unfinished = [this] { return !service.calls.empty() && !is_aborted; };
  co_await wait_while(std::move(is_unfinished), service.limits.close_time);
  service.calls.end_all();
  if (service.traces != nullptr) {
    service.traces->stop();
    co_await service.traces->flush();
  }
  is_stopped = true;
  Code ignored;
  signals.cancel(ignored);
  if (listener.size() > 0) io.stop();
}

// The lines about what else is read again go to the new file.
void Server::Impl::reopen_audit_log() {
  if (service.audit == nullptr) return;
  const Status opened = service.audit->reopen();
  if (!opened.ok()) log_event("audit_log_kept", opened.error().message);
}

void Server::Impl::read_keys() {
  if (service.options.api_key_file.empty()) return;
  auto keys = ApiKeys::collect(service.options.api_key_file, service.options.api_keys);
  audit({.action = "keys_reload", .error = keys.ok() ? "" : keys.error().message});
  if (!keys.ok()) return log_event("keys_kept", keys.error().message);
  service.keys = std::move(keys).value();
  log_event("keys_reloaded", "");
}

// Connections go on with the certificate that they began with.
void Server::Impl::read_certificate() {
  if (service.tls == nullptr) return;
  auto tls = tls_context(service.options.certificate, service.options.certificate_key);
  audit({.action = "certificate_reload", .error = tls.ok() ? "" : tls.error().message});
  if (!tls.ok()) return log_event("certificate_kept", tls.error().message);
  service.tls = std::move(tls).value();
  log_event("certificate_reloaded", "");
}

void Server::Impl::reload() {
  reopen_audit_log();
  read_keys();
  read_certificate();
  if (service.fleet != nullptr) service.fleet->reload();
  read_models();
}

// A worker reads them, since they may be many.
void Server::Impl::read_models() {
  if (service.fleet == nullptr || !service.fleet->options().read_models) return;
  service.workers->worker_for(PreparationWorkers::kShortBody + 1).submit([this] {
    auto models = service.fleet->options().read_models();
    asio::post(io, [this, models = std::move(models)]() mutable { take_models(std::move(models)); });
  });
}

void Server::Impl::take_models(Result<std::vector<FleetModel>> models) {
  if (!models.ok()) {
    audit({.action = "models_reload", .error = models.error().message});
    return log_event("models_kept", models.error().message);
  }
  const FleetChange change = service.fleet->update(std::move(models).value());
  const std::string text =
      fmt::format("{} new, {} gone, {} with other options", change.added, change.gone, change.changed);
  audit({.action = "models_reload", .detail = text});
  log_event("models_reloaded", text);
}

void Server::Impl::reload_or_keep() {
  try {
    reload();
  } catch (const std::exception&) {
    log_failure("reload_failed", std::current_exception());
  }
}

Connection::Task<void> Server::Impl::take_signals() {
  while (!is_stopped) {  // drain() may finish before this coroutine starts
    Code error;
    const int signal = co_await signals.async_wait(asio::redirect_error(asio::use_awaitable, error));
    if (error) co_return;
    if (signal == SIGHUP) {
      reload_or_keep();
      continue;
    }
    // No call is in progress, and opening a model cannot be interrupted.
    if (service.phase == Phase::kLoading) {
      audit({.action = "stop"});
      std::_Exit(0);
    }
    on_drain();
  }
}

Server::Server(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Server::~Server() = default;

Result<std::unique_ptr<Server>> Server::listen(ServerParts parts) {
  OUTRIDER_RETURN_IF_ERROR(check_routes(parts.options.no_log_routes));
  OUTRIDER_TRY(ApiKeys keys, ApiKeys::collect(parts.options.api_key_file, parts.options.api_keys));
  OUTRIDER_TRY(auto tls, tls_context(parts.options.certificate, parts.options.certificate_key));
  auto impl = std::make_unique<Impl>(std::move(parts), std::move(keys), std::move(tls));
  OUTRIDER_RETURN_IF_ERROR(impl->collect_traces());
  if (impl->service.fleet != nullptr) OUTRIDER_RETURN_IF_ERROR(impl->service.fleet->open());
  OUTRIDER_RETURN_IF_ERROR(impl->open_batches());
  OUTRIDER_RETURN_IF_ERROR(impl->listener.open(impl->parts.listening_socket));
  if (impl->service.keys.has_short())
    log_warning("--api-key is short and can be guessed; programs of this machine are not kept out by it");
  std::unique_ptr<Server> server(new Server(std::move(impl)));
  OUTRIDER_RETURN_IF_ERROR(server->impl_->begin_audit(server->url()));
  return server;
}

int Server::port() const { return impl_->listener.port(); }

std::string Server::url() const {
  const std::string& host = impl_->service.options.host;
  if (const std::string path = socket_path(host); !path.empty()) return "unix:" + path;
  const bool is_v6 = host.find(':') != std::string::npos;
  return fmt::format("{}://{}{}{}:{}", impl_->service.tls == nullptr ? "http" : "https", is_v6 ? "[" : "",
                     host, is_v6 ? "]" : "", port());
}

Status Server::run() {
  Impl& impl = *impl_;
  try {
    impl.service.workers = std::make_unique<PreparationWorkers>();
    if (impl.service.fleet == nullptr) {
      impl.service.engine = std::make_unique<EngineLoop>(impl.parts.open, impl.engine_events());
    } else {
      impl.start_fleet();
    }
  } catch (const std::exception& error) {
    return resource_error(fmt::format("cannot start the threads of the server: {}", error.what()));
  }
  impl.run_handlers();
  if (impl.service.batches != nullptr) impl.service.batches->stop();
  if (impl.service.engine != nullptr) impl.service.engine->stop();
  impl.service.workers->stop();
  impl.audit({.action = "stop", .error = impl.failure ? impl.failure->message : ""});
  return impl.failure ? Status(*impl.failure) : Status();
}

void Server::stop() { impl_->io.stop(); }

void Server::drain() {
  asio::post(impl_->io, [this] { impl_->on_drain(); });
}

void Server::reload() {
  asio::post(impl_->io, [this] { impl_->reload_or_keep(); });
}

void Server::handle_signals() {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) impl_->signals.add(signal);
  asio::co_spawn(impl_->io, impl_->take_signals(), [this](const std::exception_ptr& failure) {
    if (failure == nullptr) return;
    log_failure("signals_failed", failure);
    impl_->on_drain();
  });
}

}  // namespace outrider
