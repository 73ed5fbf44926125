// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <thread>

#include "base/counter_rng.h"
#include "base/interrupt_guard.h"
#include "cli/commands/commands.h"
#include "cli/terminal.h"
#include "remote/network/known_networks.h"

namespace outrider {
namespace {

// The named network with the parts that were given one by one.
NetworkShape shape_of_network(const NetworkOptions& options) {
  NetworkShape shape = *find_network(options.name);  // the option table knows the same names
  if (options.delay_ms) shape.round_trip_ms = *options.delay_ms;
  if (options.jitter_ms) shape.jitter_ms = *options.jitter_ms;
  if (options.megabits) shape.bits_per_second = *options.megabits * 1e6;
  if (options.loss) shape.loss = *options.loss;
  return shape;
}

// Bytes until connection number n is cut: exponential with this mean, by seed and number.
std::function<int64_t(int64_t)> random_cuts(int64_t mean_bytes, uint64_t seed) {
  if (mean_bytes == 0) return {};
  return [mean_bytes, seed](int64_t connection) {
    const uint64_t bits = mix64(seed ^ mix64(static_cast<uint64_t>(connection)));
    const double uniform = (static_cast<double>(bits >> 11) + 1) * 0x1.0p-53;
    return static_cast<int64_t>(-std::log(uniform) * static_cast<double>(mean_bytes));
  };
}

Status set_target(const std::string& text, ProxyOptions& options) {
  const size_t colon = text.rfind(':');
  const std::string port = colon == std::string::npos ? "" : text.substr(colon + 1);
  const bool is_number =
      !port.empty() && port.size() <= 5 && port.find_first_not_of("0123456789") == std::string::npos;
  if (colon == 0 || !is_number || std::stoi(port) > 65535)
    return usage_error(fmt::format("expected HOST:PORT to forward to, found '{}'", text));
  options.target_host = text.substr(0, colon);
  options.target_port = std::stoi(port);
  return {};
}

}  // namespace

Status run_netsim(const Settings& settings) {
  const NetworkOptions& network = settings.network;
  const uint64_t seed = settings.request.sampling.seed;
  ProxyOptions options{.port = network.port,
                       .shape = shape_of_network(network),
                       .seed = seed,
                       .cut_after = random_cuts(network.cut_bytes, seed)};
  OUTRIDER_RETURN_IF_ERROR(set_target(network.target, options));
  OUTRIDER_TRY(const std::unique_ptr<ShapedProxy> proxy, ShapedProxy::start(std::move(options)));
  const InterruptGuard guard({SIGINT, SIGTERM});
  write_output(fmt::format("forwarding 127.0.0.1:{} to {}\n", proxy->port(), network.target));
  std::fflush(stdout);
  while (!InterruptGuard::interrupted()) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const ShapedProxy::Counts counts = proxy->counts();
  write_output(fmt::format("{} connections, {} cut, {} bytes there, {} bytes back\n", counts.connections,
                           counts.cuts, counts.bytes_to_target, counts.bytes_from_target));
  return {};
}

}  // namespace outrider
