// SPDX-License-Identifier: Apache-2.0
#include "hub/transfer/hub_client.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <array>
#include <charconv>

#include "base/check.h"
#include "base/white_space.h"

namespace outrider {
namespace {

constexpr long kMaxRedirects = 10;
constexpr long kConnectSeconds = 20;
constexpr long kSilenceSeconds = 30;  // a connection that brings no byte for so long is given up

// One request while it runs.
struct Exchange {
  const HubGet& request;
  TransferObserver& observer;
  CURL* curl = nullptr;
  HubAnswer answer = {};
  Status stopped = {};  // the error that ended the request from this side
};

int status_of(CURL* curl) {
  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
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
  return a.size() == lower.size() && curl_strnequal(a.data(), lower.data(), a.size()) != 0;
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
  const int status = status_of(exchange.curl);
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

void set_connection(CURL* curl, const std::string& url) {
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_USERAGENT, "outrider/" OUTRIDER_VERSION);
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  // An encrypted request is never redirected to one that is not.
  curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, url.starts_with("https:") ? "https" : "http,https");
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(curl, CURLOPT_MAXREDIRS, kMaxRedirects);
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, kSilenceSeconds);
}

void set_callbacks(CURL* curl, Exchange& exchange) {
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, take_header);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, &exchange);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_body);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &exchange);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, watch);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &exchange);
}

}  // namespace

struct HubClient::Handle {
  Handle() : curl(curl_easy_init()) { OUTRIDER_CHECK(curl != nullptr); }
  ~Handle() { curl_easy_cleanup(curl); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  CURL* curl;
  std::array<char, CURL_ERROR_SIZE> error = {};
};

HubClient::HubClient(std::string token, TransferObserver& observer)
    : token_(std::move(token)), observer_(observer) {
  [[maybe_unused]] static const CURLcode once = curl_global_init(CURL_GLOBAL_DEFAULT);
  handle_ = std::make_unique<Handle>();
}

HubClient::~HubClient() = default;

Result<HubAnswer> HubClient::get(const HubGet& request) {
  CURL* curl = handle_->curl;
  Exchange exchange{.request = request, .observer = observer_, .curl = curl};
  curl_easy_reset(curl);  // connections stay open
  handle_->error[0] = '\0';
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, handle_->error.data());
  set_connection(curl, request.url);
  set_callbacks(curl, exchange);
  if (!token_.empty()) {
    curl_easy_setopt(curl, CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
    curl_easy_setopt(curl, CURLOPT_XOAUTH2_BEARER, token_.c_str());
  }
  const std::string range = fmt::format("{}-", request.offset);
  if (request.offset > 0) curl_easy_setopt(curl, CURLOPT_RANGE, range.c_str());

  const CURLcode code = curl_easy_perform(curl);
  OUTRIDER_RETURN_IF_ERROR(exchange.stopped);
  exchange.answer.status = status_of(curl);
  if (code != CURLE_OK) {
    exchange.answer.failure = handle_->error[0] != '\0' ? handle_->error.data() : curl_easy_strerror(code);
    exchange.answer.may_recover = is_of_the_network(code);
  }
  return exchange.answer;
}

Error interrupted_error() { return io_error("interrupted; the same command goes on where this one ended"); }

}  // namespace outrider
