// SPDX-License-Identifier: Apache-2.0
// Private to the server: includes Boost.
#pragma once

#include <boost/asio/ssl/context.hpp>
#include <filesystem>
#include <memory>

#include "outrider/result.h"

namespace outrider {

// The settings of TLS 1.2 and 1.3 with the certificate chain of a PEM file, the server's own first, and the
// private key of another one. The key must not be readable by others; an empty `key` is in the chain's file.
// Null: `chain` is empty, and the server speaks without TLS. Error: a file cannot be read, or the key is not
// the certificate's.
Result<std::shared_ptr<boost::asio::ssl::context>> tls_context(const std::filesystem::path& chain,
                                                               const std::filesystem::path& key);

}  // namespace outrider
