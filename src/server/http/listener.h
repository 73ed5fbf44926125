// SPDX-License-Identifier: Apache-2.0
// Private to the server: includes Boost.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
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

  Status open();
  void start();
  // Accepts no further connections and closes those between two requests.
  void stop();
  void close_all();

  int port() const { return port_; }
  size_t size() const { return connections_.size(); }

 private:
  using Socket = Connection::Socket;
  class Registration;

  Connection::Task<void> accept();
  Connection::Task<void> serve(Socket socket, std::string address);
  Connection::Task<void> watch_deadlines();
  void take(Socket socket);
  void expire_sessions();

  boost::asio::io_context* io_;
  Service* service_;
  boost::asio::ip::tcp::acceptor acceptor_;
  boost::asio::steady_timer sweep_;
  int port_ = 0;
  bool is_stopped_ = false;
  std::unordered_set<Connection*> connections_;
  std::unordered_map<std::string, int> by_address_;
};

}  // namespace outrider
