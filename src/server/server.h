// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chat_template/chat_template.h"
#include "config/environment.h"
#include "config/settings.h"
#include "open/parts.h"
#include "outrider/engine.h"
#include "outrider/result.h"
#include "outrider/sampling_params.h"
#include "server/fleet/fleet_options.h"
#include "server/http/limits.h"

namespace outrider {

// The parts that a server is made of.
struct ServerParts {
  ServerOptions options;
  HttpLimits limits;
  std::function<Result<std::unique_ptr<Engine>>()> open;     // called on the engine's thread
  std::shared_ptr<const std::atomic<LoadStage>> load_stage;  // progress of `open`; null: unknown
  std::shared_ptr<const std::string> ready_note =
      {};  // for the line that says so, written by `open`; null: none
  std::string model_name;
  std::vector<std::string> model_aliases = {};  // further names in requests
  int max_batch = 1;                            // sequences per step of the engine
  SamplingParams sampling;                      // defaults below the requests' and the model's
  SamplingChoices sampling_choices;             // options that override the defaults of the model
  std::optional<ChatTemplate> chat_template;    // replaces the model's
  TemplateValues template_values;               // variables of the template in every request
  std::optional<int64_t> thinking_budget;       // tokens, of requests that name none
  std::string thinking_message;                 // is written where a budget ends
  std::function<std::string_view()> chat_html;  // the body of GET /
  std::string notify_socket;                    // the socket of systemd; empty: none
  std::string fleet_key = {};                   // of the fleet whose engine this is; empty: of none
  CollectorVariables collector = {};            // of the environment, for --otlp-traces-endpoint
  std::optional<int> listening_socket = {};     // a descriptor that takes the place of host and port
  // Several models, whose engines are processes that this server starts; then the parts about one model,
  // from `open` to `thinking_message`, mean nothing.
  std::optional<FleetOptions> fleet = {};
};

struct ServedModel;

// The model of an open engine, as requests see it.
// `on_engine`: see ServedAdapters; empty: clients change no adapters
ServedModel model_to_serve(const Engine& engine, const ServerParts& parts,
                           std::function<Status(std::function<Status(Engine&)> task)> on_engine = {});

// Listens first and then opens the model; /health reports the progress. One thread is for I/O, one for
// preparing requests and one for the engine.
class Server {
 public:
  // Reads keys and certificate, binds and listens. Errors: an address that needs keys, keys or a certificate
  // that cannot be read, a port in use.
  static Result<std::unique_ptr<Server>> listen(ServerParts parts);
  ~Server();  // not while run() runs

  int port() const;         // 0: a UNIX socket
  std::string url() const;  // "http://127.0.0.1:8000"; https with a certificate; "unix:/run/outrider.sock"

  // Serves on this thread until drained or stopped. Error: the model could not be opened, the engine cannot
  // go on, or there is no memory for the threads.
  Status run();

  // These may be called from any thread, also before run().
  // Refuses new calls and finishes calls in progress within the drain timeout. A second call ends them at
  // once.
  void drain();
  // Ends run() at once: connections break off in the middle.
  void stop();
  // Reads the files of keys and certificate again. The old ones stay if they cannot be read.
  void reload();

  // SIGTERM and SIGINT drain, SIGHUP reloads. Only a program should call this, since it takes over
  // signals.
  void handle_signals();

 private:
  struct Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace outrider
