// SPDX-License-Identifier: Apache-2.0
#include "tests/support/tls_forwarder.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <unistd.h>

#include <array>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <cstdio>
#include <string>
#include <thread>

namespace outrider {
namespace {

namespace net = boost::asio;
using net::use_awaitable;
using Tcp = net::ip::tcp;

// Writes a new key and a certificate that it signed itself.
void write_certificate(const std::string& key_file, const std::string& certificate_file) {
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_EC_gen("P-256"), EVP_PKEY_free);
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(X509_new(), X509_free);
  X509* const x509 = certificate.get();
  X509_set_version(x509, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(x509), 1);
  X509_gmtime_adj(X509_getm_notBefore(x509), -60);
  X509_gmtime_adj(X509_getm_notAfter(x509), 3600);
  X509_set_pubkey(x509, key.get());
  X509_NAME* const name = X509_get_subject_name(x509);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>("test"), -1, -1,
                             0);
  X509_set_issuer_name(x509, name);
  X509_EXTENSION* const address = X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, "IP:127.0.0.1");
  X509_add_ext(x509, address, -1);
  X509_EXTENSION_free(address);
  EXPECT_NE(X509_sign(x509, key.get(), EVP_sha256()), 0);
  FILE* file = std::fopen(key_file.c_str(), "w");
  PEM_write_PrivateKey(file, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  std::fclose(file);
  file = std::fopen(certificate_file.c_str(), "w");
  PEM_write_X509(file, x509);
  std::fclose(file);
}

// Copies bytes until one side closes.
template <typename From, typename To>
net::awaitable<void> copy(From& from, To& to) {
  std::array<char, 4096> bytes;
  for (;;) {
    const size_t size = co_await from.async_read_some(net::buffer(bytes), use_awaitable);
    co_await net::async_write(to, net::buffer(bytes.data(), size), use_awaitable);
  }
}

struct Pair {
  net::ssl::stream<Tcp::socket> client;
  Tcp::socket server;

  void close() {
    boost::system::error_code ignored;
    client.next_layer().close(ignored);
    server.close(ignored);
  }
};

net::awaitable<void> forward(std::shared_ptr<Pair> pair, int target_port) {
  co_await pair->client.async_handshake(net::ssl::stream_base::server, use_awaitable);
  const Tcp::endpoint target(net::ip::address_v4::loopback(), static_cast<uint16_t>(target_port));
  co_await pair->server.async_connect(target, use_awaitable);
  const auto end = [pair](const std::exception_ptr&) { pair->close(); };
  const auto executor = pair->server.get_executor();
  net::co_spawn(executor, copy(pair->client, pair->server), end);
  net::co_spawn(executor, copy(pair->server, pair->client), end);
}

}  // namespace

struct TlsForwarder::Impl {
  explicit Impl(int to) : target_port(to) {
    folder = std::filesystem::temp_directory_path() / ("outrider_tls_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder);
    certificate = folder / "certificate.pem";
    write_certificate(folder / "key.pem", certificate);
    tls.use_certificate_file(certificate, net::ssl::context::pem);
    tls.use_private_key_file(folder / "key.pem", net::ssl::context::pem);
    net::co_spawn(io, accept(), net::detached);
    thread = std::thread([this] { io.run(); });
  }
  ~Impl() {
    io.stop();
    thread.join();
    std::filesystem::remove_all(folder);
  }

  net::awaitable<void> accept() {
    for (;;) {
      Tcp::socket socket = co_await acceptor.async_accept(use_awaitable);
      auto pair = std::make_shared<Pair>(Pair{.client = {std::move(socket), tls}, .server = Tcp::socket(io)});
      net::co_spawn(io, forward(std::move(pair), target_port), net::detached);
    }
  }

  int target_port;
  std::filesystem::path folder, certificate;
  net::io_context io{1};
  net::ssl::context tls{net::ssl::context::tls_server};
  Tcp::acceptor acceptor{io, {net::ip::address_v4::loopback(), 0}};
  std::thread thread;
};

TlsForwarder::TlsForwarder(int target_port) : impl_(std::make_unique<Impl>(target_port)) {}
TlsForwarder::~TlsForwarder() = default;

int TlsForwarder::port() const { return impl_->acceptor.local_endpoint().port(); }
const std::filesystem::path& TlsForwarder::certificate() const { return impl_->certificate; }

}  // namespace outrider
