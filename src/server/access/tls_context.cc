// SPDX-License-Identifier: Apache-2.0
#include "server/access/tls_context.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace outrider {
namespace {

namespace ssl = boost::asio::ssl;
using Code = boost::system::error_code;

Status check_key_file(const std::filesystem::path& path) {
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0)
    return io_error(
        fmt::format("cannot read the private key in {}: {}", path.string(), std::strerror(errno)));
  if ((info.st_mode & S_IRWXO) == 0) return {};
  return input_error(fmt::format(
      "{0}: expected a private key that others cannot read; chmod 600 {0}, or name another file with "
      "--ssl-keyfile",
      path.string()));
}

}  // namespace

Result<std::shared_ptr<ssl::context>> tls_context(const std::filesystem::path& chain,
                                                  const std::filesystem::path& key) {
  if (chain.empty() && !key.empty())
    return usage_error("--ssl-keyfile goes with --ssl-certfile; found no --ssl-certfile");
  if (chain.empty()) return std::shared_ptr<ssl::context>();
  const std::filesystem::path& key_file = key.empty() ? chain : key;
  OUTRIDER_RETURN_IF_ERROR(check_key_file(key_file));
  auto context = std::make_shared<ssl::context>(ssl::context::tls_server);
  context->set_options(ssl::context::no_tlsv1 | ssl::context::no_tlsv1_1);
  // Without this OpenSSL would ask the terminal.
  context->set_password_callback([](size_t, ssl::context::password_purpose) { return std::string(); });
  Code error;
  context->use_certificate_chain_file(chain.string(), error);
  if (error)
    return input_error(
        fmt::format("{}: expected a certificate chain in PEM, found: {}", chain.string(), error.message()));
  context->use_private_key_file(key_file.string(), ssl::context::pem, error);
  if (error)
    return input_error(
        fmt::format("{}: expected the certificate's private key in PEM, without a password, found: {}",
                    key_file.string(), error.message()));
  return context;
}

}  // namespace outrider
