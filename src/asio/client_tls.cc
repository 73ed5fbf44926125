// SPDX-License-Identifier: Apache-2.0
#include "asio/client_tls.h"

namespace outrider {

boost::asio::ssl::context client_tls() {
  using boost::asio::ssl::context;
  context tls(context::tls_client);
  tls.set_verify_mode(boost::asio::ssl::verify_peer);
  tls.set_options(context::no_tlsv1 | context::no_tlsv1_1);
  return tls;
}

}  // namespace outrider
