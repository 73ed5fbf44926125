// SPDX-License-Identifier: Apache-2.0
#include "tests/serving/serving.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>

namespace outrider {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

sockaddr_in address_of(const std::string& host, int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  inet_pton(AF_INET, host.c_str(), &address.sin_addr);
  return address;
}

// A drafter that takes a given time and proposes nothing.
class SlowDrafter final : public Drafter {
 public:
  explicit SlowDrafter(milliseconds step) : step_(step) {}
  const DrafterTraits& traits() const override { return traits_; }
  Status draft(std::span<const DraftRequest>, std::span<TokenTree>) override {
    std::this_thread::sleep_for(step_);
    return {};
  }

 private:
  milliseconds step_;
  DrafterTraits traits_{.name = "Slow"};
};

std::string lowered(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

}  // namespace

TestClient::TestClient(int port, const std::string& from, int receive_buffer)
    : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
  if (receive_buffer > 0) setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof(receive_buffer));
  const sockaddr_in local = address_of(from, 0), peer = address_of("127.0.0.1", port);
  if (bind(fd_, reinterpret_cast<const sockaddr*>(&local), sizeof(local)) != 0 ||
      connect(fd_, reinterpret_cast<const sockaddr*>(&peer), sizeof(peer)) != 0) {
    close();
  }
}

TestClient::TestClient(const std::string& socket) : fd_(::socket(AF_UNIX, SOCK_STREAM, 0)) {
  sockaddr_un peer = {};
  peer.sun_family = AF_UNIX;
  socket.copy(peer.sun_path, sizeof(peer.sun_path) - 1);
  if (connect(fd_, reinterpret_cast<const sockaddr*>(&peer), sizeof(peer)) != 0) close();
}

TestClient::~TestClient() { close(); }

void TestClient::FreeTls::operator()(ssl_st* tls) const { SSL_free(tls); }

bool TestClient::secure(const std::filesystem::path& authority) {
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_client_method()),
                                                                  SSL_CTX_free);
  SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  SSL_CTX_load_verify_locations(context.get(), authority.c_str(), nullptr);
  tls_.reset(SSL_new(context.get()));
  SSL_clear_mode(tls_.get(), SSL_MODE_AUTO_RETRY);  // fill() waits for no more than its time
  SSL_set_fd(tls_.get(), fd_);
  return SSL_connect(tls_.get()) == 1;
}

void TestClient::close() {
  tls_.reset();
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

void TestClient::abort() {
  const linger reset = {.l_onoff = 1, .l_linger = 0};
  setsockopt(fd_, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
  close();
}

void TestClient::half_close() { shutdown(fd_, SHUT_WR); }

bool TestClient::send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = tls_ ? SSL_write(tls_.get(), bytes.data(), static_cast<int>(bytes.size()))
                              : ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

bool TestClient::fill(Clock::time_point end) {
  const auto left = std::chrono::duration_cast<milliseconds>(end - Clock::now()).count();
  pollfd poll_fd = {.fd = fd_, .events = POLLIN, .revents = 0};
  if (fd_ < 0) return false;
  const bool is_buffered = tls_ && SSL_pending(tls_.get()) > 0;
  if (!is_buffered && poll(&poll_fd, 1, static_cast<int>(std::max<int64_t>(left, 0))) <= 0) return false;
  std::array<char, 16384> bytes;
  const ssize_t count = tls_ ? SSL_read(tls_.get(), bytes.data(), static_cast<int>(bytes.size()))
                             : recv(fd_, bytes.data(), bytes.size(), 0);
  if (tls_ && count <= 0 && SSL_get_error(tls_.get(), static_cast<int>(count)) == SSL_ERROR_WANT_READ)
    return true;
  if (count <= 0) return false;
  rest_.append(bytes.data(), static_cast<size_t>(count));
  return true;
}

std::string TestClient::receive(milliseconds time) {
  if (rest_.empty()) fill(Clock::now() + time);
  return std::exchange(rest_, {});
}

std::optional<std::string> TestClient::receive_until(std::string_view text, milliseconds time) {
  const auto end = Clock::now() + time;
  while (rest_.find(text) == std::string::npos) {
    if (!fill(end)) return std::nullopt;
  }
  const size_t size = rest_.find(text) + text.size();
  std::string result = rest_.substr(0, size);
  rest_.erase(0, size);
  return result;
}

bool TestClient::is_closed(milliseconds time) {
  const auto end = Clock::now() + time;
  while (Clock::now() < end) {
    if (!fill(end)) return Clock::now() < end;
  }
  return false;
}

TestAnswer TestClient::read_answer(milliseconds time) {
  TestAnswer answer;
  const auto end = Clock::now() + time;
  const auto left = [&] { return std::chrono::duration_cast<milliseconds>(end - Clock::now()); };
  auto head = receive_until("\r\n\r\n", left());
  if (head && head->starts_with("HTTP/1.1 100 ")) head = receive_until("\r\n\r\n", left());
  if (!head || head->size() < 12) return answer;
  answer.status = std::atoi(head->c_str() + 9);
  std::istringstream lines(*head);
  for (std::string line; std::getline(lines, line);) {
    const size_t colon = line.find(": ");
    if (colon != std::string::npos)
      answer.headers[lowered(line.substr(0, colon))] = line.substr(colon + 2, line.size() - colon - 3);
  }
  if (answer.headers.count("transfer-encoding") > 0) {
    while (const auto size_line = receive_until("\r\n", left())) {
      const size_t size = std::strtoul(size_line->c_str(), nullptr, 16);
      while (rest_.size() < size + 2 && fill(end)) {
      }
      if (rest_.size() < size + 2) return answer;
      answer.body += rest_.substr(0, size);
      rest_.erase(0, size + 2);
      answer.is_whole = size == 0;
      if (answer.is_whole) return answer;
    }
    return answer;
  }
  const auto length = answer.headers.find("content-length");
  const size_t size = length == answer.headers.end() ? 0 : std::strtoul(length->second.c_str(), nullptr, 10);
  while (rest_.size() < size && fill(end)) {
  }
  answer.is_whole = rest_.size() >= size;
  answer.body = rest_.substr(0, size);
  rest_.erase(0, answer.body.size());
  return answer;
}

std::string post_text(const std::string& path, const std::string& body, const std::string& headers) {
  return fmt::format(
      "POST {} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
      "{}\r\n{}\r\n{}",
      path, body.size(), headers, body);
}

TestAnswer TestClient::get(const std::string& path, const std::string& headers) {
  send(fmt::format("GET {} HTTP/1.1\r\nHost: localhost\r\n{}\r\n", path, headers));
  return read_answer();
}

TestAnswer TestClient::post(const std::string& path, const std::string& body, const std::string& headers) {
  send(post_text(path, body, headers));
  return read_answer();
}

EngineOptions tiny_engine() {
  EngineOptions options;
  options.model = OUTRIDER_SOURCE_DIR "/tests/data/models/llama";
  options.threads = 1;
  options.max_batch = 4;
  return options;
}

EngineOptions slow_engine(milliseconds step) {
  EngineOptions options = tiny_engine();
  options.speculation.decoding_type = Method::kUserProvided;
  options.user_drafter = std::make_shared<SlowDrafter>(step);
  return options;
}

TestServer::TestServer(const std::function<void(ServerParts&)>& change, bool takes_signals) {
  ServerParts parts;
  parts.options.port = 0;
  parts.open = [] { return Engine::open(tiny_engine()); };
  parts.max_batch = tiny_engine().max_batch;
  parts.model_name = "tiny";
  parts.chat_html = [] { return std::string_view("<!doctype html>"); };
  if (change) change(parts);
  certificate_ = parts.options.certificate;
  auto server = Server::listen(std::move(parts));
  if (!server.ok()) {
    ADD_FAILURE() << server.error().message;
    std::abort();
  }
  server_ = std::move(server).value();
  if (takes_signals) server_->handle_signals();
  thread_ = std::thread([this] { result_ = server_->run(); });
}

TestServer::~TestServer() {
  if (!thread_.joinable()) return;
  const Status status = stop();
  EXPECT_TRUE(status.ok()) << status.error().message;
}

TestClient TestServer::client() const {
  TestClient client(port());
  if (!certificate_.empty()) {
    EXPECT_TRUE(client.secure(certificate_));
  }
  return client;
}

Status TestServer::stop() {
  server_->drain();
  server_->drain();
  return wait();
}

Status TestServer::wait() {
  thread_.join();
  return *result_;
}

bool TestServer::wait_until_ready() const {
  const auto end = Clock::now() + std::chrono::minutes(1);
  while (Clock::now() < end) {
    if (client().get("/health").status == 200) return true;
    std::this_thread::sleep_for(milliseconds(5));
  }
  return false;
}

double TestServer::metric(const std::string& name, const std::string& label) const {
  std::istringstream lines(client().get("/metrics").body);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(name + "{") && line.find(label) != std::string::npos)
      return std::atof(line.c_str() + line.rfind(' '));
  }
  ADD_FAILURE() << "no sample of " << name << " " << label;
  return -1;
}

bool TestServer::wait_for_stats(const std::function<bool(int64_t, int64_t)>& condition) const {
  const auto end = Clock::now() + std::chrono::minutes(1);
  while (Clock::now() < end) {
    const auto stats = nlohmann::json::parse(client().get("/stats").body, nullptr, false);
    if (stats.is_object() && condition(stats["used_pages"], stats["calls"])) return true;
    std::this_thread::sleep_for(milliseconds(5));
  }
  return false;
}

bool TestServer::wait_until_free() const {
  return wait_for_stats([](int64_t pages, int64_t calls) { return pages == 0 && calls == 0; });
}

bool TestServer::wait_until_busy() const {
  return wait_for_stats([](int64_t pages, int64_t) { return pages > 0; });
}

}  // namespace outrider
