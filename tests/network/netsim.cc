// SPDX-License-Identifier: Apache-2.0
// Forwards connections as a slow or broken network would.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <thread>

#include "base/counter_rng.h"
#include "base/interrupt_guard.h"
#include "tests/network/known_networks.h"
#include "tests/network/last_token.h"

namespace outrider {
namespace {

struct NetsimOptions {
  std::string target, network = "none";
  int port = 0;
  double megabits = -1, delay_ms = -1, jitter_ms = -1, loss = -1;  // negative: as in the named network
  int64_t cut_bytes = 0;
  uint32_t last_token = 0;
  uint64_t seed = 0;
};

NetworkShape shape_of_network(const NetsimOptions& options) {
  NetworkShape shape = find_network(options.network).value();
  if (options.delay_ms >= 0) shape.round_trip_ms = options.delay_ms;
  if (options.jitter_ms >= 0) shape.jitter_ms = options.jitter_ms;
  if (options.megabits >= 0) shape.bits_per_second = options.megabits * 1e6;
  if (options.loss >= 0) shape.loss = options.loss;
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

Status forward(const NetsimOptions& options) {
  const size_t colon = options.target.rfind(':');
  OUTRIDER_TRY(
      const std::unique_ptr<ShapedProxy> proxy,
      ShapedProxy::start({.target_host = options.target.substr(0, colon),
                          .target_port = std::stoi(options.target.substr(colon + 1)),
                          .port = options.port,
                          .shape = shape_of_network(options),
                          .seed = options.seed,
                          .cut_after = random_cuts(options.cut_bytes, options.seed),
                          .watch = options.last_token == 0 ? nullptr : up_to_token(options.last_token)}));
  const InterruptGuard guard({SIGINT, SIGTERM});
  std::printf("forwarding 127.0.0.1:%d to %s\n", proxy->port(), options.target.c_str());
  std::fflush(stdout);
  while (!InterruptGuard::interrupted()) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const ShapedProxy::Counts counts = proxy->counts();
  std::printf("%ld connections, %ld cut, %ld bytes there, %ld bytes back\n", counts.connections, counts.cuts,
              counts.bytes_to_target, counts.bytes_from_target);
  return {};
}

}  // namespace
}  // namespace outrider

int main(int argc, char** argv) {
  outrider::NetsimOptions options;
  CLI::App app("Forwards connections as a slow or broken network would.");
  app.add_option("target", options.target, "HOST:PORT where connections go")
      ->required()
      ->check(CLI::Validator(
          [](const std::string& text) {
            const size_t colon = text.rfind(':');
            const bool is_address = colon != std::string::npos && colon > 0 && colon + 1 < text.size() &&
                                    text.find_first_not_of("0123456789", colon + 1) == std::string::npos;
            return is_address ? std::string() : "expected HOST:PORT, found '" + text + "'";
          },
          "HOST:PORT"));
  app.add_option("--port", options.port, "port on 127.0.0.1; 0: any that is free");
  app.add_option("--network", options.network, "none, metro, 5g or 4g")
      ->check(CLI::IsMember({"none", "metro", "5g", "4g"}));
  app.add_option("--delay", options.delay_ms, "milliseconds of a round trip, half of it in each direction");
  app.add_option("--jitter", options.jitter_ms, "round trips take --delay plus or minus up to so much");
  app.add_option("--rate", options.megabits, "megabits per second in each direction; 0: no limit");
  app.add_option("--loss", options.loss, "probability that a packet is lost, which costs 200 ms");
  app.add_option("--cut-bytes", options.cut_bytes, "mean number of bytes until a connection is cut; 0: none");
  app.add_option(
      "--last-token", options.last_token,
      "the network ends for good once a server that verifies drafts has sent so many tokens; 0: it stays");
  app.add_option("--seed", options.seed, "seed of delays, losses and cuts");
  CLI11_PARSE(app, argc, argv);
  const outrider::Status status = outrider::forward(options);
  if (!status.ok()) std::fprintf(stderr, "netsim: %s\n", status.error().message.c_str());
  return status.ok() ? 0 : 1;
}
