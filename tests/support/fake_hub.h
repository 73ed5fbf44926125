// SPDX-License-Identifier: Apache-2.0
// A stand-in of the Hugging Face Hub on a loopback port, with the faults of networks and servers on demand.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace outrider {

// How the next request for a path is answered instead.
struct HubFault {
  int status = 0;                // instead of 200 or 206; 0: as usual
  std::string headers = {};      // lines with "\r\n"
  int64_t cut_after = -1;        // bytes of the body before the connection ends; -1: all of it
  bool knows_no_ranges = false;  // everything is sent again
  int pause_ms = 0;              // before every 16 KiB of the body
};

struct HubRequest {
  std::string target;
  std::string authorization;
  std::string range;
};

class FakeHub {
 public:
  FakeHub();
  ~FakeHub();
  FakeHub(const FakeHub&) = delete;
  FakeHub& operator=(const FakeHub&) = delete;

  std::string url() const;  // "http://127.0.0.1:PORT"

  // A repository with these files. Files of more than 1000 bytes are kept as large files are, with a SHA-256.
  void add_repository(const std::string& name, const std::map<std::string, std::string>& files);
  // The contents under a path of the server, whatever a listing says about them.
  void set_contents(const std::string& target, std::string contents);
  // The answers to the next requests for the path, each used once.
  void fail(const std::string& target, std::vector<HubFault> faults);

  // "/ORG/REPO/resolve/COMMIT/FILE"
  static std::string target_of(const std::string& repository, const std::string& file);

  std::vector<HubRequest> requests() const;

 private:
  void accept();
  void serve(boost::asio::ip::tcp::socket& socket);
  std::optional<HubFault> take_fault(const std::string& target);

  boost::asio::io_context io_;
  boost::asio::ip::tcp::acceptor acceptor_;
  std::atomic<bool> ending_ = false;
  mutable std::mutex mutex_;
  std::map<std::string, std::string> contents_;
  std::map<std::string, std::vector<HubFault>> faults_;
  std::vector<HubRequest> requests_;
  std::list<std::thread> sessions_;
  std::thread thread_;
};

}  // namespace outrider
