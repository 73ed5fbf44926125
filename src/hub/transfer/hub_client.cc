// SPDX-License-Identifier: Apache-2.0
#include "hub/transfer/hub_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/check.h"
#include "base/white_space.h"
#include "hub/transfer/curl_library.h"

namespace outrider {
namespace {

constexpr long kMaxRedirects = 10;
constexpr long kConnectSeconds = 20;
constexpr long kSilenceSeconds = 30;  // a connection that brings no byte for so long is given up

// One request while it runs.
struct Exchange {
  const CurlLibrary& library;
  const HubGet& request;
  TransferObserver& observer;
  CURL* curl = nullptr;
  HubAnswer answer = {};
  Status stopped = {};  // the error that ended the request from this side
};

int status_of(const Exchange& exchange) {
  long status = 0;
  exchange.library.get_info(exchange.curl, CURLINFO_RESPONSE_CODE, &status);
  return static_cast<int>(status);
}

std::string_view unquoted(std::string_view text) {
  if (text.starts_with("W/")) text.remove_prefix(2);
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') text = text.substr(1, text.size() - 2);
  return text;
}

// Seconds; the other form of the header, a date, is rare and ignored.
std::optional<double> retry_seconds(std::string_view text) {
  int seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || end != text.data() + text.size() || seconds < 0) return std::nullopt;
  return seconds;
}

bool equals_ignoring_case(std::string_view a, std::string_view lower) {
  const auto lowered = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; };
  return std::ranges::equal(a, lower, {}, lowered);
}

// Called for every header line of every answer, also of redirections.
size_t take_header(char* data, size_t, size_t size, void* user) {
  HubAnswer& answer = static_cast<Exchange*>(user)->answer;
  const std::string_view line(data, size);
  const size_t colon = line.find(':');
  if (colon == std::string_view::npos) return size;
  const std::string_view name = line.substr(0, colon);
  const std::string_view value = trimmed(line.substr(colon + 1));
  if (equals_ignoring_case(name, "x-error-code")) answer.error_code = value;
  if (equals_ignoring_case(name, "x-linked-etag")) answer.linked_etag = unquoted(value);
  if (equals_ignoring_case(name, "retry-after")) answer.retry_after = retry_seconds(value);
  return size;
}

size_t take_body(char* data, size_t, size_t size, void* user) {
  auto& exchange = *static_cast<Exchange*>(user);
  const int status = status_of(exchange);
  if (status != 200 && status != 206) return size;  // the page of an error
  exchange.stopped = exchange.request.body(status, {data, size});
  return exchange.stopped.ok() ? size : 0;  // 0 ends the transfer
}

int watch(void* user, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  auto& exchange = *static_cast<Exchange*>(user);
  if (!exchange.observer.is_interrupted()) return 0;
  exchange.stopped = interrupted_error();
  return 1;
}

bool is_of_the_network(CURLcode code) {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_PARTIAL_FILE:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
      return true;
    default:
      return false;
  }
}

void set_connection(const Exchange& exchange) {
  const auto set = exchange.library.set;
  CURL* const curl = exchange.curl;
  const std::string& url = exchange.request.url;
  constexpr long kBoth = CURLPROTO_HTTP | CURLPROTO_HTTPS;
  set(curl, CURLOPT_URL, url.c_str());
  set(curl, CURLOPT_USERAGENT, "outrider/" OUTRIDER_VERSION);
  set(curl, CURLOPT_NOSIGNAL, 1L);
  set(curl, CURLOPT_PROTOCOLS, kBoth);
  // An encrypted request is never redirected to one that is not.
  set(curl, CURLOPT_REDIR_PROTOCOLS, url.starts_with("https:") ? long{CURLPROTO_HTTPS} : kBoth);
  set(curl, CURLOPT_FOLLOWLOCATION, 1L);
  set(curl, CURLOPT_MAXREDIRS, kMaxRedirects);
  set(curl, CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  set(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
  set(curl, CURLOPT_LOW_SPEED_TIME, kSilenceSeconds);
}

void set_callbacks(Exchange& exchange) {
  const auto set = exchange.library.set;
  CURL* const curl = exchange.curl;
  set(curl, CURLOPT_HEADERFUNCTION, take_header);
  set(curl, CURLOPT_HEADERDATA, &exchange);
  set(curl, CURLOPT_WRITEFUNCTION, take_body);
  set(curl, CURLOPT_WRITEDATA, &exchange);
  set(curl, CURLOPT_NOPROGRESS, 0L);
  set(curl, CURLOPT_XFERINFOFUNCTION, watch);
  set(curl, CURLOPT_XFERINFODATA, &exchange);
}

}  // namespace

struct HubClient::Handle {
  explicit Handle(const CurlLibrary& opened) : library(opened), curl(opened.init()) {
    OUTRIDER_CHECK(curl != nullptr);
  }
  ~Handle() { library.cleanup(curl); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  const CurlLibrary& library;
  CURL* curl;
  std::array<char, CURL_ERROR_SIZE> error = {};
};

Result<std::unique_ptr<HubClient>> HubClient::open(std::string token, TransferObserver& observer) {
  OUTRIDER_TRY(const CurlLibrary* const library, curl_library());
  return std::unique_ptr<HubClient>(
      new HubClient(std::make_unique<Handle>(*library), std::move(token), observer));
}

HubClient::HubClient(std::unique_ptr<Handle> handle, std::string token, TransferObserver& observer)
    : handle_(std::move(handle)), token_(std::move(token)), observer_(observer) {}

HubClient::~HubClient() = default;

Result<HubAnswer> HubClient::get(const HubGet& request) {
  const CurlLibrary& library = handle_->library;
  CURL* const curl = handle_->curl;
  Exchange exchange{.library = library, .request = request, .observer = observer_, .curl = curl};
  library.reset(curl);  // connections stay open
  handle_->error[0] = '\0';
  library.set(curl, CURLOPT_ERRORBUFFER, handle_->error.data());
  set_connection(exchange);
  set_callbacks(exchange);
  if (!token_.empty()) {
    library.set(curl, CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
    library.set(curl, CURLOPT_XOAUTH2_BEARER, token_.c_str());
  }
  const std::string range = fmt::format("{}-", request.offset);
  if (request.offset > 0) library.set(curl, CURLOPT_RANGE, range.c_str());

  const CURLcode code = library.perform(curl);
  OUTRIDER_RETURN_IF_ERROR(exchange.stopped);
  exchange.answer.status = status_of(exchange);
  if (code != CURLE_OK) {
    exchange.answer.failure = handle_->error[0] != '\0' ? handle_->error.data() : library.text_of(code);
    exchange.answer.may_recover = is_of_the_network(code);
  }
  return exchange.answer;
}

Error interrupted_error() { return io_error("interrupted; the same command goes on where this one ended"); }

}  // namespace outrider
