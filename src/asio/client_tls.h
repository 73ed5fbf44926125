// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/ssl/context.hpp>

namespace outrider {

// TLS 1.2 and 1.3 of a client that verifies its server. The caller says which authorities to trust.
boost::asio::ssl::context client_tls();

}  // namespace outrider
