// SPDX-License-Identifier: Apache-2.0
// Exceptions on every thread of the server. The n-th allocation of a thread fails, for every n that a request
// reaches: one request may fail, and nothing else.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <new>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "tests/serving/serving.h"
#include "tests/serving/serving_calls.h"

namespace {

enum class Role : int { kTest, kIo, kEngine, kWorker };

thread_local Role role = Role::kWorker;  // of the threads that nobody has named
std::atomic<int> failing_role{-1};
std::atomic<int> countdown{0};  // the allocation of that role that takes it to 0 fails

bool fails_now() { return failing_role.load() == static_cast<int>(role) && --countdown == 0; }

void* allocated(size_t bytes, size_t alignment) {
  if (fails_now()) throw std::bad_alloc();
  bytes = (bytes + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, bytes == 0 ? alignment : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(size_t bytes) { return allocated(bytes, alignof(std::max_align_t)); }
void* operator new(size_t bytes, std::align_val_t alignment) {
  return allocated(bytes, static_cast<size_t>(alignment));
}
// Sanitizers replace the forms that are not replaced here.
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return allocated(bytes, alignof(std::max_align_t));
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}
void* operator new[](size_t bytes, const std::nothrow_t& tag) noexcept { return operator new(bytes, tag); }
void* operator new[](size_t bytes) { return allocated(bytes, alignof(std::max_align_t)); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }

namespace outrider {
namespace {

// A server whose threads are named.
void with_named_threads(ServerParts& parts) {
  with_chats(parts);
  parts.open = [] {
    role = Role::kEngine;
    return Engine::open(tiny_engine());
  };
  parts.chat_html = [] {
    role = Role::kIo;
    return std::string_view("<!doctype html>");
  };
}

class FailingAllocations : public testing::TestWithParam<int> {
 protected:
  FailingAllocations() {
    role = Role::kTest;
    EXPECT_TRUE(server_.wait_until_ready());
    EXPECT_EQ(server_.client().get("/").status, 200);
  }

  // Sends a request whose n-th allocation on threads of that role fails. False: it has not so many.
  bool fail(int n, const std::string& request, TestAnswer& answer) {
    TestClient client = server_.client();
    countdown = n;
    failing_role = GetParam();
    client.send(request);
    answer = client.read_answer(std::chrono::seconds(20));
    failing_role = -1;
    return countdown.load() <= 0;
  }

  void check_all(const std::string& path, const std::string& body, std::string (*text)(const TestAnswer&)) {
    const std::string expected = text(server_.client().post(path, body));
    ASSERT_FALSE(expected.empty());
    int n = 1;
    TestAnswer answer;
    for (; fail(n, post_text(path, body), answer); ++n) {
      const bool is_closed = answer.status == 0 || !answer.is_whole;
      const bool is_error = answer.status >= 400 || answer.body.find("\"error\"") != std::string::npos;
      if (!is_closed && !is_error) {
        EXPECT_EQ(text(answer), expected) << n;
      }
      ASSERT_EQ(text(server_.client().post(path, body)), expected) << "after " << n << "\n" << answer.body;
      ASSERT_TRUE(server_.wait_until_free()) << "after " << n << "\n" << answer.body;
    }
    EXPECT_EQ(text(answer), expected);
    EXPECT_GT(n, 5);
    std::printf("%d allocations failed\n", n - 1);
  }

  TestServer server_{with_named_threads};
};

std::string events_text(const TestAnswer& answer) { return streamed_text(answer.body); }

TEST_P(FailingAllocations, EndOneAnswer) { check_all("/v1/completions", kShort, text_of); }

TEST_P(FailingAllocations, EndOneStream) {
  check_all("/v1/completions",
            R"({"prompt": "hello", "max_tokens": 6, "temperature": 0, "n": 2, "logprobs": 2, "stream": true,
                "structured_outputs": {"regex": "[a-z ]+"}})",
            events_text);
}

TEST_P(FailingAllocations, EndOneChat) {
  check_all("/v1/chat/completions",
            R"({"messages": [{"role": "user", "content": "hi"}], "max_tokens": 4, "temperature": 0})",
            [](const TestAnswer& answer) {
              const auto json = nlohmann::json::parse(answer.body, nullptr, false);
              return json.contains("choices") ? json["choices"][0]["message"]["content"].dump()
                                              : std::string();
            });
}

std::string role_name(const testing::TestParamInfo<int>& info) {
  return info.param == static_cast<int>(Role::kIo)       ? "io"
         : info.param == static_cast<int>(Role::kEngine) ? "engine"
                                                         : "worker";
}
INSTANTIATE_TEST_SUITE_P(Threads, FailingAllocations,
                         testing::Values(static_cast<int>(Role::kIo), static_cast<int>(Role::kEngine),
                                         static_cast<int>(Role::kWorker)),
                         role_name);

TEST(ServerFailures, ACallbackThatThrowsEndsItsRequest) {
  role = Role::kTest;
  TestServer server([](ServerParts& parts) {
    parts.chat_html = []() -> std::string_view { throw std::runtime_error("planted"); };
  });
  ASSERT_TRUE(server.wait_until_ready());
  const TestAnswer answer = server.client().get("/");
  EXPECT_EQ(answer.status, 500);
  EXPECT_EQ(error_type(answer), "server_error");
  EXPECT_EQ(answer.body.find("planted"), std::string::npos);  // the log says it, the client does not need it
  EXPECT_EQ(server.client().post("/v1/completions", kShort).status, 200);
}

}  // namespace
}  // namespace outrider
