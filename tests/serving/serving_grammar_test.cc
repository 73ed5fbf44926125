// SPDX-License-Identifier: Apache-2.0
// Each element of the grammars of HTTP/1.1 and WebSocket, too long, too many, truncated, repeated or out of
// order. The server answers with an error or closes, in time, and goes on.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "tests/serving/drafting_fixture.h"
#include "tests/serving/serving.h"
#include "tests/serving/serving_calls.h"

namespace outrider {
namespace {

using std::chrono::milliseconds;

struct GrammarCase {
  std::string name;
  std::string bytes;
  bool is_whole = false;  // the server need not wait for more to see what is wrong
};

std::string repeated(std::string_view piece, size_t count) {
  std::string text;
  text.reserve(piece.size() * count);
  for (size_t i = 0; i < count; ++i) text += piece;
  return text;
}

// The elements of a request with a body in chunks. A case changes one of them.
struct ChunkedRequest {
  std::string method = "POST", space = " ", target = "/v1/completions", version = " HTTP/1.1",
              line_end = "\r\n";
  std::string host = "Host: localhost\r\n", type = "Content-Type: application/json\r\n";
  std::string encoding = "Transfer-Encoding: chunked\r\n", header, header_end = "\r\n";
  std::string size = "2", extension, size_end = "\r\n", data = "{}", data_end = "\r\n";
  std::string last = "0", last_extension, last_end = "\r\n", trailer, end = "\r\n";

  std::string text() const {
    return method + space + target + version + line_end + host + type + encoding + header + header_end +
           size + extension + size_end + data + data_end + last + last_extension + last_end + trailer + end;
  }
};

using Element = std::string ChunkedRequest::*;
struct NamedElement {
  const char* name;
  Element element;
};
constexpr NamedElement kElements[] = {{"method", &ChunkedRequest::method},
                                      {"space", &ChunkedRequest::space},
                                      {"target", &ChunkedRequest::target},
                                      {"version", &ChunkedRequest::version},
                                      {"line end", &ChunkedRequest::line_end},
                                      {"host", &ChunkedRequest::host},
                                      {"type", &ChunkedRequest::type},
                                      {"encoding", &ChunkedRequest::encoding},
                                      {"header end", &ChunkedRequest::header_end},
                                      {"size", &ChunkedRequest::size},
                                      {"size end", &ChunkedRequest::size_end},
                                      {"data", &ChunkedRequest::data},
                                      {"data end", &ChunkedRequest::data_end},
                                      {"last", &ChunkedRequest::last},
                                      {"last end", &ChunkedRequest::last_end},
                                      {"end", &ChunkedRequest::end}};

// Every element left out, cut in the middle, repeated, and exchanged with its neighbour.
void add_changed_elements(std::vector<GrammarCase>& cases) {
  const size_t count = std::size(kElements);
  for (size_t i = 0; i < count; ++i) {
    const auto [name, element] = kElements[i];
    const ChunkedRequest usual;
    for (const size_t times : {0, 2, 3, 50'000}) {
      ChunkedRequest request;
      request.*element = repeated(usual.*element, times);
      cases.push_back({name + (" " + std::to_string(times) + " times"), request.text()});
    }
    ChunkedRequest exchanged;
    const Element next = kElements[(i + 1) % count].element;
    std::swap(exchanged.*element, exchanged.*next);
    cases.push_back({std::string(name) + " exchanged", exchanged.text()});
    const std::string whole = usual.text();
    cases.push_back({std::string("cut at ") + name, whole.substr(0, whole.size() * i / count)});
  }
}

void add_long_parts(std::vector<GrammarCase>& cases) {
  const auto add = [&cases](const std::string& name, Element element, const std::string& value) {
    ChunkedRequest request;
    request.*element = value;
    cases.push_back({name, request.text(), true});
  };
  for (const size_t size : {9'000, 20'000, 66'000, 200'000, 2'000'000}) {
    const std::string n = " of " + std::to_string(size), a(size, 'a');
    add("method" + n, &ChunkedRequest::method, a);
    add("target" + n, &ChunkedRequest::target, "/" + a);
    add("query" + n, &ChunkedRequest::target, "/v1/completions?" + a);
    add("version" + n, &ChunkedRequest::version, " HTTP/1." + a);
    add("host" + n, &ChunkedRequest::host, "Host: " + a + "\r\n");
    add("header name" + n, &ChunkedRequest::header, a + ": b\r\n");
    add("header value" + n, &ChunkedRequest::header, "A: " + a + "\r\n");
    add("header without colon" + n, &ChunkedRequest::header, a + "\r\n");
    add("folded header" + n, &ChunkedRequest::header, "A: b\r\n " + a + "\r\n");
    add("coding" + n, &ChunkedRequest::encoding, "Transfer-Encoding: chunked," + a + "\r\n");
    add("size" + n, &ChunkedRequest::size, std::string(size, '0') + "2");
    add("extension name" + n, &ChunkedRequest::extension, ";" + a);
    add("extension value" + n, &ChunkedRequest::extension, ";b=" + a);
    add("quoted extension" + n, &ChunkedRequest::extension, ";b=\"" + a + "\"");
    add("open quoted extension" + n, &ChunkedRequest::extension, ";b=\"" + a);
    add("space before extension" + n, &ChunkedRequest::extension, std::string(size, ' ') + ";b");
    add("last extension" + n, &ChunkedRequest::last_extension, ";" + a);
    add("last size" + n, &ChunkedRequest::last, std::string(size, '0'));
    add("trailer name" + n, &ChunkedRequest::trailer, a + ": b\r\n");
    add("trailer value" + n, &ChunkedRequest::trailer, "A: " + a + "\r\n");
    add("trailer without colon" + n, &ChunkedRequest::trailer, a + "\r\n");
    add("folded trailer" + n, &ChunkedRequest::trailer, "A: b\r\n " + a + "\r\n");
    add("data without end" + n, &ChunkedRequest::data, a);
  }
  for (const size_t count : {101, 10'000, 50'000}) {
    const std::string n = ", " + std::to_string(count);
    add("headers" + n, &ChunkedRequest::header, repeated("A: b\r\n", count));
    add("folds" + n, &ChunkedRequest::header, "A: b\r\n" + repeated(" c\r\n", count));
    add("codings" + n, &ChunkedRequest::encoding,
        "Transfer-Encoding: " + repeated("chunked,", count) + "chunked\r\n");
    add("extensions" + n, &ChunkedRequest::extension, repeated(";a=b", count));
    add("trailers" + n, &ChunkedRequest::trailer, repeated("A: b\r\n", count));
    add("trailer folds" + n, &ChunkedRequest::trailer, "A: b\r\n" + repeated(" c\r\n", count));
    add("chunks with extensions" + n, &ChunkedRequest::data,
        repeated("{}\r\n2;abcdefgh=ijklmnop\r\n", count) + "{}");
  }
}

// A trailer may not say how the message is framed or who sends it.
void add_trailers(std::vector<GrammarCase>& cases) {
  for (const char* trailer :
       {"Content-Length: 5", "Transfer-Encoding: chunked", "Host: evil.example", "Authorization: Bearer x",
        "Connection: upgrade", "Trailer: A", "Expect: 100-continue", "Content-Encoding: gzip", ": a",
        "A b: c", "A\x01: b", "A: \x01", "A:", "GET / HTTP/1.1"}) {
    ChunkedRequest request;
    request.trailer = std::string(trailer) + "\r\n";
    cases.push_back({std::string("trailer ") + trailer, request.text()});
  }
}

std::vector<GrammarCase> http_cases() {
  std::vector<GrammarCase> cases;
  add_changed_elements(cases);
  add_long_parts(cases);
  add_trailers(cases);
  return cases;
}

// A frame of a client: opcode with its flags, length, mask and payload (RFC 6455, 5.2).
std::string frame(int first, const std::string& payload, bool is_masked = true) {
  std::string bytes(1, static_cast<char>(first));
  const int mask = is_masked ? 0x80 : 0;
  if (payload.size() < 126) {
    bytes += static_cast<char>(mask | static_cast<int>(payload.size()));
  } else {
    bytes += static_cast<char>(mask | 127);
    for (int shift = 56; shift >= 0; shift -= 8) bytes += static_cast<char>(payload.size() >> shift);
  }
  if (is_masked) bytes += std::string(4, '\0');  // a mask that changes nothing
  return bytes + payload;
}

std::vector<GrammarCase> frame_cases() {
  std::vector<GrammarCase> cases;
  for (int first = 0; first < 256; ++first)
    cases.push_back({"first byte " + std::to_string(first), frame(first, "abc")});
  for (const int opcode : {0x0, 0x1, 0x2, 0x8, 0x9, 0xa}) {
    const std::string name = "opcode " + std::to_string(opcode);
    for (const size_t size : {0, 1, 125, 126, 65'536, 20'000'000})
      cases.push_back({name + " of " + std::to_string(size), frame(0x80 | opcode, std::string(size, 'x'))});
    cases.push_back({name + " not masked", frame(0x80 | opcode, "abc", false)});
    cases.push_back({name + " in pieces", repeated(frame(opcode, "ab"), 3)});
    cases.push_back({name + " 10,000 times", repeated(frame(0x80 | opcode, "ab"), 10'000)});
    for (const char* length : {"\xff\xff\xff\xff\xff\xff\xff\xff", "\x7f\xff\xff\xff\xff\xff\xff\xff"})
      cases.push_back({name + " of a huge length", std::string(1, static_cast<char>(0x80 | opcode)) + '\xff' +
                                                       std::string(length, 8) + "mask"});
    for (size_t cut = 1; cut < 6; ++cut)
      cases.push_back({name + " cut", frame(0x80 | opcode, "abc").substr(0, cut)});
  }
  cases.push_back({"text first, then a continuation", frame(0x01, "a") + frame(0x80, "b")});
  cases.push_back({"a message in a message", frame(0x02, "a") + frame(0x82, "b")});
  cases.push_back({"a ping in a message", frame(0x02, "a") + frame(0x89, "p") + frame(0x80, "b")});
  for (const char* code : {"\x00\x00", "\x03\xe7", "\x03\xec", "\x03\xed", "\x0f\xff", "\xff\xff", "\x03"})
    cases.push_back({"close with a bad code", frame(0x88, std::string(code, 2))});
  cases.push_back({"close with bad UTF-8", frame(0x88, std::string("\x03\xe8\xff", 3))});
  cases.push_back({"frames after a close", frame(0x88, "") + frame(0x82, "a")});
  return cases;
}

struct Handshake {
  std::string key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n";
  std::string version = "Sec-WebSocket-Version: 13\r\n";
  std::string protocol = "Sec-WebSocket-Protocol: " + std::string(kDraftingProtocol) + "\r\n";
  std::string more = {};

  std::string text() const {
    return "GET /v1/drafting HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" +
           key + version + protocol + more + "\r\n";
  }
};

std::vector<GrammarCase> handshake_cases() {
  std::vector<GrammarCase> cases = {{"no key", Handshake{.key = ""}.text()},
                                    {"empty key", Handshake{.key = "Sec-WebSocket-Key: \r\n"}.text()},
                                    {"no version", Handshake{.version = ""}.text()},
                                    {"no protocol", Handshake{.protocol = ""}.text()}};
  for (const size_t size : {25, 5'000, 20'000, 70'000}) {
    const std::string a = std::string(size, 'a') + "\r\n";
    cases.push_back({"long key", Handshake{.key = "Sec-WebSocket-Key: " + a}.text()});
    cases.push_back({"long version", Handshake{.version = "Sec-WebSocket-Version: " + a}.text()});
    cases.push_back({"long protocol", Handshake{.protocol = "Sec-WebSocket-Protocol: " + a}.text()});
  }
  return cases;
}

void with_short_times(ServerParts& parts) {
  verify_for_clients(parts);
  parts.limits.header_time = milliseconds(400);
  parts.limits.body_gap = milliseconds(400);
  parts.limits.open_time = milliseconds(400);
  parts.limits.idle_time = milliseconds(400);
  parts.limits.close_time = milliseconds(200);
}

void expect_error_or_close(const TestServer& server, const GrammarCase& item) {
  TestClient client(server.port());
  const auto start = std::chrono::steady_clock::now();
  client.send(item.bytes);
  const TestAnswer answer = client.read_answer(std::chrono::seconds(10));
  const auto took = std::chrono::steady_clock::now() - start;
  EXPECT_LT(took, std::chrono::seconds(5)) << item.name;
  if (answer.status != 0) {
    EXPECT_GE(answer.status, 400) << item.name;
    EXPECT_LT(answer.status, 500) << item.name << ": " << answer.body;
    EXPECT_FALSE(error_type(answer).empty()) << item.name << ": " << answer.body;
  }
  if (item.is_whole) {
    EXPECT_NE(answer.status, 408) << item.name << ": it was left to the timeout";
  }
}

TEST(ServerGrammar, HttpElementsAreErrorsInTime) {
  TestServer server(with_short_times);
  ASSERT_TRUE(server.wait_until_ready());
  const std::vector<GrammarCase> cases = http_cases();
  EXPECT_GE(cases.size(), 200u);
  for (const GrammarCase& item : cases) {
    expect_error_or_close(server, item);
    ASSERT_EQ(server.client().get("/health").status, 200) << item.name;
  }
  EXPECT_EQ(server.client().post("/v1/completions", kShort).status, 200);
}

// The trailer of 200,000 bytes once ended the server, on every route that reads a body.
TEST(ServerGrammar, LongTrailersAreErrorsOnEveryRoute) {
  TestServer server(with_short_times);
  ASSERT_TRUE(server.wait_until_ready());
  for (const char* route :
       {"/v1/completions", "/v1/chat/completions", "/v1/responses", "/v1/messages", "/infill",
        "/v1/embeddings", "/v1/rerank", "/tokenize", "/detokenize", "/apply-template"}) {
    ChunkedRequest request;
    request.target = route;
    for (const size_t size : {1'000, 9'000, 20'000, 66'000, 200'000}) {
      request.trailer = std::string(size, 'a') + "\r\n";
      expect_error_or_close(server, {std::string(route) + " " + std::to_string(size), request.text(), true});
    }
  }
  EXPECT_EQ(server.client().post("/v1/completions", kShort).status, 200);
}

TEST(ServerGrammar, ExtensionsAndTrailersWithinTheLimitsAreTaken) {
  TestServer server;
  ASSERT_TRUE(server.wait_until_ready());
  ChunkedRequest request;
  request.data = kShort;
  char size[20];
  std::snprintf(size, sizeof(size), "%zx", kShort.size());
  request.size = size;
  request.extension = ";a=" + std::string(4'000, 'b');
  request.last_extension = ";c=\"d\"";
  request.trailer = "A: b\r\nC: " + std::string(1'000, 'd') + "\r\n";
  TestClient client = server.client();
  for (int i = 0; i < 2; ++i) {  // the connection lives on
    client.send(request.text());
    const TestAnswer answer = client.read_answer();
    EXPECT_EQ(answer.status, 200) << answer.body;
  }
}

TEST(ServerGrammar, HandshakesAndFramesOfWebSocketsAreErrorsOrEndInTime) {
  TestServer server(with_short_times);
  ASSERT_TRUE(server.wait_until_ready());
  for (const GrammarCase& item : handshake_cases()) expect_error_or_close(server, item);
  for (const GrammarCase& item : frame_cases()) {
    TestClient client(server.port());
    client.send(Handshake().text());
    const auto head = client.receive_until("\r\n\r\n", std::chrono::seconds(10));
    ASSERT_TRUE(head && head->starts_with("HTTP/1.1 101")) << item.name << ": " << head.value_or("");
    client.send(item.bytes);
    client.half_close();
    EXPECT_TRUE(client.is_closed(std::chrono::seconds(10))) << item.name;
    ASSERT_EQ(server.client().get("/health").status, 200) << item.name;
  }
  EXPECT_TRUE(server.wait_until_free());
}

}  // namespace
}  // namespace outrider
