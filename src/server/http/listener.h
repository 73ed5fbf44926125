// SPDX-License-Identifier: Apache-2.0
// Private to the server: includes Boost.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
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
  // Starts accepting connections, and the watch over their deadlines, if they do not run. The watch starts
  // the accepting again, which an exception may end.
  void start();
  // Accepts no further connections and closes those between two requests.
  void stop();
  void close_all();

  int port() const { return port_; }
  size_t size() const { return connections_.size(); }

 private:
  using Socket = Connection::Socket;
  class Registration;
  class Running;

  Connection::Task<void> accept(std::unique_ptr<Running> running);
  Connection::Task<void> serve(std::unique_ptr<Registration> registration);
  Connection::Task<void> watch_deadlines(std::unique_ptr<Running> running);
  void check_deadlines();
  void take(Socket socket);
  bool take_unless_it_fails(Socket socket);
  void expire_sessions();

  boost::asio::io_context* io_;
  Service* service_;
  boost::asio::ip::tcp::acceptor acceptor_;
  boost::asio::steady_timer sweep_;
  int port_ = 0;
  bool is_stopped_ = false;
  bool is_accepting_ = false, is_watching_ = false;
  std::unordered_set<Connection*> connections_;
  std::unordered_map<std::string, int> by_address_;
};

}  // namespace outrider
