// SPDX-License-Identifier: Apache-2.0
#include "tests/serving/malformed_requests.h"

#include <utility>

namespace outrider {
namespace {

using Cases = std::vector<MalformedRequest>;

const std::string kHost = "Host: localhost\r\n";
const std::string kJson = "Content-Type: application/json\r\n";
const std::string kPost = "POST /v1/completions HTTP/1.1\r\n" + kHost + kJson;

std::string get(const std::string& target) { return "GET " + target + " HTTP/1.1\r\n" + kHost + "\r\n"; }
std::string with_header(const std::string& header) {
  return "GET /nothing HTTP/1.1\r\n" + kHost + header + "\r\n\r\n";
}
std::string with_body(const std::string& headers, const std::string& body) {
  return kPost + headers + "\r\n" + body;
}

void add_request_lines(Cases& cases) {
  const std::vector<std::pair<std::string, std::string>> lines = {
      {"0.9", "GET /nothing\r\n\r\n"},
      {"no version", "GET /nothing \r\n" + kHost + "\r\n"},
      {"version 2", "GET /nothing HTTP/2.0\r\n" + kHost + "\r\n"},
      {"version 1.9", "GET /nothing HTTP/1.9\r\n" + kHost + "\r\n"},
      {"version text", "GET /nothing HTTP/x.y\r\n" + kHost + "\r\n"},
      {"lower version", "GET /nothing http/1.1\r\n" + kHost + "\r\n"},
      {"no method", " /nothing HTTP/1.1\r\n" + kHost + "\r\n"},
      {"no target", "GET  HTTP/1.1\r\n" + kHost + "\r\n"},
      {"two spaces", "GET  /nothing  HTTP/1.1\r\n" + kHost + "\r\n"},
      {"tab", "GET\t/nothing\tHTTP/1.1\r\n" + kHost + "\r\n"},
      {"method of bytes", "\x80\xff /nothing HTTP/1.1\r\n" + kHost + "\r\n"},
      {"unknown method", "BREW /nothing HTTP/1.1\r\n" + kHost + "\r\n"},
      {"lower method", "get /health HTTP/1.1\r\n" + kHost + "\r\n"},
      {"connect", "CONNECT localhost:1 HTTP/1.1\r\n" + kHost + "\r\n"},
      {"trace", "TRACE /health HTTP/1.1\r\n" + kHost + "\r\n"},
      {"options star", "OPTIONS * HTTP/1.1\r\n" + kHost + "\r\n"},
      {"absolute form", get("http://localhost/health")},
      {"authority form", get("localhost:80")},
      {"bare line feeds", "GET /nothing HTTP/1.1\nHost: localhost\n\n"},
      {"bare return", "GET /nothing HTTP/1.1\r" + kHost + "\r\n"},
      {"only a space", " \r\n\r\n"},
      {"a number", "12345\r\n\r\n"},
      {"TLS", std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11) + std::string(100, '\x42') +
                  "\r\n\r\n"},
      {"HTTP/2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
      {"a response", "HTTP/1.1 200 OK\r\n\r\n"},
      {"nul in method", std::string("GE\0T /nothing HTTP/1.1\r\n", 24) + kHost + "\r\n"},
      {"long method", std::string(5000, 'G') + " / HTTP/1.1\r\n" + kHost + "\r\n"},
      {"endless line", std::string(70000, 'A')},
  };
  for (const auto& [name, bytes] : lines) cases.push_back({"request line: " + name, bytes});
}

void add_targets(Cases& cases) {
  const std::vector<std::string> targets = {"/%",
                                            "/%4",
                                            "/%zz",
                                            "/%00",
                                            "/health%00",
                                            "/%0d%0aX:%20y",
                                            "/a%7f",
                                            "//",
                                            "//health",
                                            "/./health",
                                            "/../etc/passwd",
                                            "/%2e%2e/%2e%2e/etc/passwd",
                                            "/..%2f..%2fetc%2fpasswd",
                                            "/v1/models/../../etc/passwd",
                                            "/v1/models/%2e%2e%2fetc",
                                            "/health/",
                                            "/health%20",
                                            "/HEALTH",
                                            "/v1",
                                            "/v1/",
                                            "/v1/models/",
                                            "/v1/models/no-such-model",
                                            "/v1/requests//cancel",
                                            "/health#x",
                                            "?",
                                            "?/health",
                                            "\\health",
                                            "/\\..\\..",
                                            "/%c0%af",
                                            "/%u0041",
                                            "/" + std::string(7000, 'a'),
                                            "/" + std::string(9000, 'a'),
                                            "/?" + std::string(9000, 'q'),
                                            "/" + std::string(40000, '%'),
                                            "/v1/models/" + std::string(8000, '.')};
  for (const std::string& target : targets) cases.push_back({"target: " + target.substr(0, 40), get(target)});
}

void add_headers(Cases& cases) {
  std::string many, large;
  for (int i = 0; i < 101; ++i) many += "X-" + std::to_string(i) + ": y\r\n";
  for (int i = 0; i < 10000; ++i) large += "X-" + std::to_string(i) + ": y\r\n";
  const std::vector<std::pair<std::string, std::string>> headers = {
      {"no colon", "NoColon"},
      {"space before colon", "Name : value"},
      {"empty name", ": value"},
      {"name with space", "A name: value"},
      {"name of bytes", "\x80\x81: value"},
      {"nul in value", std::string("X: a\0b", 6)},
      {"control in value",
       "X: a\x01"
       "b"},
      {"fold first", " folded: value"},
      {"101 of them", many + "Last: y"},
      {"10,000 of them", large + "Last: y"},
      {"long value", "X: " + std::string(9000, 'v')},
      {"longer value", "X: " + std::string(40000, 'v')},
      {"long name", std::string(9000, 'n') + ": v"},
      {"two hosts", "Host: localhost"},
      {"bad length", "Content-Length: abc"},
      {"negative length", "Content-Length: -1"},
      {"huge length", "Content-Length: 99999999999999999999999"},
      {"two lengths", "Content-Length: 1\r\nContent-Length: 2"},
      {"list of lengths", "Content-Length: 1, 2"},
      {"hexadecimal length", "Content-Length: 0x10"},
      {"plus length", "Content-Length: +2"},
      {"length and chunks", "Content-Length: 2\r\nTransfer-Encoding: chunked"},
      {"chunks and length", "Transfer-Encoding: chunked\r\nContent-Length: 2"},
      {"unknown encoding", "Transfer-Encoding: gzip"},
      {"chunked twice", "Transfer-Encoding: chunked, chunked"},
      {"chunked not last", "Transfer-Encoding: chunked, gzip"},
      {"upgrade", "Connection: Upgrade\r\nUpgrade: websocket"},
      {"h2c",
       "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA"},
      {"many ranges", "Range: bytes=" + std::string(2000, '0') + "-1,2-3"},
      {"id with breaks", "X-Request-Id: a\rb"},
      {"expectation", "Expect: something-else"},
  };
  for (const auto& [name, header] : headers) cases.push_back({"header: " + name, with_header(header)});
}

void add_hosts(Cases& cases) {
  for (const std::string host :
       {"", "evil.example", "localhost.evil.example", "a b", "[::1", "localhost:port", "localhost:123456",
        "user@localhost", "localhost/", "\x80"}) {
    cases.push_back({"host: " + host, "GET /v1/models HTTP/1.1\r\nHost: " + host + "\r\n\r\n"});
  }
  cases.push_back({"host: none", "GET /v1/models HTTP/1.1\r\n\r\n"});
}

void add_bodies(Cases& cases) {
  const std::string chunked = "Transfer-Encoding: chunked\r\n";
  const std::vector<std::pair<std::string, std::string>> bodies = {
      {"chunk of size -2", with_body(chunked, "-2\r\n{}\r\n0\r\n\r\n")},
      {"chunk of no size", with_body(chunked, "\r\n{}\r\n0\r\n\r\n")},
      {"chunk of text", with_body(chunked, "xyz\r\n{}\r\n0\r\n\r\n")},
      {"chunk of 2^64", with_body(chunked, "10000000000000000\r\n{}\r\n0\r\n\r\n")},
      {"chunk of 2^63", with_body(chunked, "8000000000000000\r\n{}\r\n0\r\n\r\n")},
      {"chunk too long", with_body(chunked, "1\r\n{}\r\n0\r\n\r\n")},
      {"chunk with long extension",
       with_body(chunked, "2;" + std::string(70000, 'e') + "\r\n{}\r\n0\r\n\r\n")},
      {"chunk over the limit", with_body(chunked, "fffffff\r\n{}")},
      {"empty", with_body("Content-Length: 0\r\n", "")},
      {"no body", kPost + "\r\n"},
      {"over the limit", with_body("Content-Length: 8388609\r\n", "")},
      {"far over the limit", with_body("Content-Length: 9223372036854775807\r\n", "")},
      {"not JSON", with_body("Content-Length: 3\r\n", "abc")},
      {"not an object", with_body("Content-Length: 2\r\n", "[]")},
      {"half an object", with_body("Content-Length: 5\r\n", "{\"a\":")},
      {"nul", with_body("Content-Length: 1\r\n", std::string(1, '\0'))},
      {"bytes", with_body("Content-Length: 4\r\n", "\xff\xfe\xfd\xfc")},
      {"text/plain", "POST /v1/completions HTTP/1.1\r\n" + kHost +
                         "Content-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}"},
      {"form", "POST /v1/completions HTTP/1.1\r\n" + kHost +
                   "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 3\r\n\r\na=b"},
      {"no type", "POST /v1/completions HTTP/1.1\r\n" + kHost + "Content-Length: 2\r\n\r\n{}"},
      {"cancel of nothing",
       "POST /v1/requests/x/cancel HTTP/1.1\r\n" + kHost + kJson + "Content-Length: 2\r\n\r\n{}"},
      {"get with body", "GET /nothing HTTP/1.1\r\n" + kHost + "Content-Length: 2\r\n\r\n{}"},
      {"put", "PUT /v1/completions HTTP/1.1\r\n" + kHost + kJson + "Content-Length: 2\r\n\r\n{}"},
      {"delete", "DELETE /v1/models/tiny HTTP/1.1\r\n" + kHost + "\r\n"},
  };
  for (const auto& [name, bytes] : bodies) cases.push_back({"body: " + name, bytes});
}

}  // namespace

Cases malformed_requests() {
  Cases cases;
  add_request_lines(cases);
  add_targets(cases);
  add_headers(cases);
  add_hosts(cases);
  add_bodies(cases);
  return cases;
}

}  // namespace outrider
