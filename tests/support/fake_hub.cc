// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fake_hub.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/write.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <string_view>

#include "hub/transfer/checksum.h"

namespace outrider {
namespace {

namespace net = boost::asio;
namespace http = boost::beast::http;
using Tcp = net::ip::tcp;

constexpr std::string_view kCommit = "5555555555555555555555555555555555555555";

std::string checksum(ChecksumKind kind, const std::string& text) {
  ChecksumBuilder builder(kind, static_cast<int64_t>(text.size()));
  builder.add(text);
  return builder.finish().hex;
}

std::string sibling(const std::string& name, const std::string& text) {
  std::string json = fmt::format(R"({{"rfilename":"{}","size":{},"blobId":"{}")", name, text.size(),
                                 checksum(ChecksumKind::kGitBlob, text));
  if (text.size() > 1000)
    json += fmt::format(R"(,"lfs":{{"sha256":"{}","size":{},"pointerSize":134}})",
                        checksum(ChecksumKind::kSha256, text), text.size());
  return json + "}";
}

// The header of an answer with these bytes of all.
std::string header_text(const HubFault& fault, size_t begin, size_t all) {
  const int usual = begin > 0 ? 206 : 200;
  std::string text = fmt::format("HTTP/1.1 {} X\r\nContent-Length: {}\r\n",
                                 fault.status == 0 ? usual : fault.status, all - begin);
  if (begin > 0) text += fmt::format("Content-Range: bytes {}-{}/{}\r\n", begin, all - 1, all);
  return text + fault.headers + "\r\n";
}

}  // namespace

FakeHub::FakeHub() : acceptor_(io_, Tcp::endpoint(net::ip::address_v4::loopback(), 0)) {
  acceptor_.listen();
  thread_ = std::thread([this] { accept(); });
}

FakeHub::~FakeHub() {
  ending_ = true;
  boost::system::error_code code;
  Tcp::socket(io_).connect(acceptor_.local_endpoint(), code);
  thread_.join();
  for (std::thread& session : sessions_) session.join();
}

std::string FakeHub::url() const {
  return fmt::format("http://127.0.0.1:{}", acceptor_.local_endpoint().port());
}

void FakeHub::add_repository(const std::string& name, const std::map<std::string, std::string>& files) {
  std::string siblings;
  for (const auto& [file, text] : files) {
    siblings += (siblings.empty() ? "" : ",") + sibling(file, text);
    set_contents(target_of(name, file), text);
  }
  set_contents(fmt::format("/api/models/{}?blobs=true", name),
               fmt::format(R"({{"id":"{}","sha":"{}","siblings":[{}]}})", name, kCommit, siblings));
}

void FakeHub::set_contents(const std::string& target, std::string contents) {
  const std::lock_guard lock(mutex_);
  contents_[target] = std::move(contents);
}

void FakeHub::fail(const std::string& target, std::vector<HubFault> faults) {
  const std::lock_guard lock(mutex_);
  faults_[target] = std::move(faults);
}

std::string FakeHub::target_of(const std::string& repository, const std::string& file) {
  return fmt::format("/{}/resolve/{}/{}", repository, kCommit, file);
}

std::vector<HubRequest> FakeHub::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

void FakeHub::accept() {
  for (;;) {
    Tcp::socket socket = acceptor_.accept();
    if (ending_) return;
    sessions_.emplace_back([this, held = std::move(socket)]() mutable { serve(held); });
  }
}

std::optional<HubFault> FakeHub::take_fault(const std::string& target) {
  const auto found = faults_.find(target);
  if (found == faults_.end() || found->second.empty()) return std::nullopt;
  const HubFault fault = found->second.front();
  found->second.erase(found->second.begin());
  return fault;
}

// One request for each connection, so that ending it needs no agreement.
void FakeHub::serve(Tcp::socket& socket) {
  constexpr size_t kPiece = size_t{16} << 10;
  boost::system::error_code code;
  boost::beast::flat_buffer buffer;
  http::request<http::empty_body> request;
  http::read(socket, buffer, request, code);
  if (code) return;
  const auto field = [&](http::field name) { return std::string(request[name]); };
  const HubRequest seen = {std::string(request.target()), field(http::field::authorization),
                           field(http::field::range)};
  HubFault fault;
  std::string body;
  {
    const std::lock_guard lock(mutex_);
    requests_.push_back(seen);
    fault = take_fault(seen.target).value_or(HubFault{});
    const auto found = contents_.find(seen.target);
    if (found == contents_.end() && fault.status == 0) fault.status = 404;
    if (fault.status == 0) body = found->second;
  }
  fault.headers += "Connection: close\r\n";
  const bool has_range = seen.range.starts_with("bytes=") && !fault.knows_no_ranges && fault.status == 0;
  const size_t begin =
      has_range ? std::min(body.size(), static_cast<size_t>(std::stoull(seen.range.substr(6)))) : 0;
  net::write(socket, net::buffer(header_text(fault, begin, body.size())), code);
  const size_t end =
      fault.cut_after < 0 ? body.size() : std::min(body.size(), begin + static_cast<size_t>(fault.cut_after));
  for (size_t at = begin; at < end && !code && !ending_; at += kPiece) {
    std::this_thread::sleep_for(std::chrono::milliseconds(fault.pause_ms));
    net::write(socket, net::buffer(std::string_view(body).substr(at, std::min(kPiece, end - at))), code);
  }
  socket.shutdown(Tcp::socket::shutdown_both, code);
}

}  // namespace outrider
