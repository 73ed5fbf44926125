// SPDX-License-Identifier: Apache-2.0
// Servers that verify, clients that draft, and their requests, for tests with the small models of tests/data.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "remote/client/drafting_parts.h"
#include "remote/client/remote_decoder.h"
#include "remote/client/server_address.h"
#include "tests/lossless/test_heads.h"
#include "tests/serving/serving.h"

namespace outrider {

EngineOptions verifying_engine();
void verify_for_clients(ServerParts& parts);

EngineOptions drafting_engine(const std::string& method);
DraftingParts drafting_parts(const std::string& method);
// The engine's options with a head of the small target.
EngineOptions with_head(EngineOptions options, const HeadCase& head, const std::filesystem::path& path);
EngineOptions with_suffix_and_head(EngineOptions options, const HeadCase& head,
                                   const std::filesystem::path& path);

DraftingServer server_at(int port);
// Requests of many kinds.
Request request_of(uint64_t number);
// Plain decoding without a server.
Completion local_completion(const Request& request);

// Decodes and compares with local_completion(): the result, and what was streamed.
void expect_same_as_local(RemoteDecoder& decoder, const Request& request);
// The error with which the server refuses the request, or "accepted".
std::string refusal_of(RemoteDecoder& decoder, const Request& request);

HeadCase head_case(const std::string& name);

// A server that can be restarted at its port, with the head that its clients draft with.
class RestartedServer {
 public:
  explicit RestartedServer(const HeadCase& head);

  int port() const { return port_; }
  DraftingParts parts_of_its_head() const;
  void stop() { server_.reset(); }
  void start_again() { start(port_); }
  void restart() {
    stop();
    start_again();
  }

 private:
  void start(int port);

  HeadCase head_;
  std::unique_ptr<FakeHead> files_;
  std::unique_ptr<TestServer> server_;
  int port_ = 0;
};

}  // namespace outrider
