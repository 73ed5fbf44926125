// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "config/settings.h"
#include "engine/open_parts.h"
#include "outrider/engine.h"
#include "outrider/result.h"
#include "outrider/sampling_params.h"
#include "server/http/limits.h"

namespace outrider {

// What a server is made of.
struct ServerParts {
  ServerOptions options;
  HttpLimits limits;
  std::function<Result<std::unique_ptr<Engine>>()> open;     // called on the engine's thread
  std::shared_ptr<const std::atomic<LoadStage>> load_stage;  // what it does; null: not told
  std::string model_name;
  int max_batch = 1;                       // that of the engine
  SamplingParams sampling;                 // where neither a request nor the model says anything
  SamplingChoices sampling_choices;        // options that rule over what the model recommends
  std::function<std::string_view()> page;  // what GET / answers
  std::string notify_socket;               // systemd's; empty: none
};

// Listens first, then opens the model: until it is there, /health says so. One thread for I/O, one for
// preparing requests, one for the engine.
class Server {
 public:
  // Reads the keys, binds and listens. Errors: an address that needs keys, keys that cannot be read, a port
  // in use.
  static Result<std::unique_ptr<Server>> listen(ServerParts parts);
  ~Server();

  int port() const;
  std::string url() const;  // "http://127.0.0.1:8000"

  // Serves on this thread until drained. Error: the model could not be opened, or the engine failed.
  Status run();

  // These may be called from any thread, also before run().
  // No new work; what runs is finished within the drain timeout. Called again: ended at once.
  void drain();
  // Keys as they are in their file now; the old ones stay if it cannot be read.
  void reload_keys();

  // SIGTERM and SIGINT drain, SIGHUP reloads the keys. For programs: a library leaves signals alone.
  void handle_signals();

 private:
  struct Impl;
  explicit Server(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace outrider
