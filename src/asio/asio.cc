// SPDX-License-Identifier: Apache-2.0
// Asio and Beast, compiled once.
#include <boost/asio/impl/src.hpp>
#include <boost/asio/ssl/impl/src.hpp>
#include <boost/beast/src.hpp>
