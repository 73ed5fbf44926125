// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sys/resource.h>

#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "cli/commands/commands.h"
#include "cli/serving/one_model.h"
#include "cli/serving/serve_fleet.h"
#include "cli/terminal.h"
#include "config/environment.h"
#include "server/page/chat_html.h"
#include "server/server.h"

namespace outrider {
namespace {

// Every connection needs a file descriptor, and the usual limit is 1024.
void raise_file_limit() {
  rlimit limit = {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

Status run_serve(const Settings& settings) {
  raise_file_limit();
  ServerParts parts;
  parts.options = settings.server;
  parts.chat_html = chat_html;
  parts.notify_socket = notify_socket();
  parts.fleet_key = fleet_key();
  parts.collector = collector_variables();
  parts.listening_socket = inherited_socket();
  if (settings.server.models.empty()) {
    OUTRIDER_RETURN_IF_ERROR(add_model(settings, parts));
  } else {
    OUTRIDER_TRY(parts.fleet, fleet_options(settings));
    parts.max_batch = settings.engine.max_batch;
  }
  OUTRIDER_TRY(const std::unique_ptr<Server> server, Server::listen(std::move(parts)));
  server->handle_signals();
  write_output(fmt::format("listening on {}\n", server->url()));
  std::fflush(stdout);
  return server->run();
}

}  // namespace outrider
