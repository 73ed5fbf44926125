// SPDX-License-Identifier: Apache-2.0
// Private to the server: includes Boost.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "outrider/result.h"
#include "server/http/connection.h"

namespace outrider {

// Accepts connections within the limits on their number, and enforces their deadlines.
class Listener {
 public:
  Listener(boost::asio::io_context* io, Service* service);

  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // descriptor: of a socket that listens already, in the place of host and port
  Status open(std::optional<int> descriptor = std::nullopt);
  // Starts accepting connections, and the watch over their deadlines, if they do not run. The watch starts
  // the accepting again, which an exception may end.
  void start();
  // Accepts no further connections and closes those between two requests.
  void stop();
  void close_all();

  int port() const { return port_; }  // 0: a UNIX socket
  size_t size() const { return connections_.size(); }

 private:
  using Socket = Connection::Socket;
  class Registration;
  class Running;

  using Protocol = boost::asio::generic::stream_protocol;

  // Listens on host and port, or on an open descriptor in their place.
  Status open_address(const std::string& host);
  Status take_over(int descriptor);
  Status open_socket(const std::string& path);
  void remove_socket();
  boost::system::error_code bind(const Protocol::endpoint& endpoint);
  Connection::Task<void> accept(std::unique_ptr<Running> running);
  Connection::Task<void> serve(std::unique_ptr<Registration> registration);
  Connection::Task<void> watch_deadlines(std::unique_ptr<Running> running);
  void check_deadlines();
  void take(Socket socket);
  bool take_unless_it_fails(Socket socket);
  void expire_calls();
  void expire_sessions();

  boost::asio::io_context* io_;
  Service* service_;
  boost::asio::basic_socket_acceptor<Protocol> acceptor_;
  std::string path_;  // of the UNIX socket that this listener made; empty: none
  boost::asio::steady_timer sweep_;
  int port_ = 0;
  bool is_stopped_ = false;
  bool is_accepting_ = false, is_watching_ = false;
  std::unordered_set<Connection*> connections_;
  std::unordered_map<std::string, int> by_address_;
};

}  // namespace outrider
