// SPDX-License-Identifier: Apache-2.0
// A client of the Batch API, and a folder for a server that has it.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <utility>

#include "tests/serving/serving.h"

namespace outrider {

class BatchFolder {
 public:
  BatchFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "outrider_batch_XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    path_ = name;
  }
  ~BatchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

// A client of the Batch API.
class BatchClient {
 public:
  explicit BatchClient(int port, std::string headers = "") : port_(port), headers_(std::move(headers)) {}

  TestAnswer send(const std::string& method, const std::string& path, const std::string& body = "",
                  const std::string& type = "application/json") const {
    TestClient client(port_);
    client.send(
        fmt::format("{} {} HTTP/1.1\r\nHost: localhost\r\n{}Content-Type: {}\r\nContent-Length: {}\r\n\r\n{}",
                    method, path, headers_, type, body.size(), body));
    return client.read_answer();
  }
  nlohmann::json ask(const std::string& method, const std::string& path,
                     const nlohmann::json& body = nlohmann::json()) const {
    const TestAnswer answer = send(method, path, body.is_null() ? "" : body.dump());
    EXPECT_EQ(answer.status, 200) << method << " " << path << ": " << answer.body;
    return nlohmann::json::parse(answer.body, nullptr, false);
  }
  std::string upload(const std::string& lines) const {
    const std::string form =
        "--x\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nbatch\r\n--x\r\n"
        "Content-Disposition: form-data; name=\"file\"; filename=\"in.jsonl\"\r\n"
        "Content-Type: application/octet-stream\r\n\r\n" +
        lines + "\r\n--x--\r\n";
    const TestAnswer answer = send("POST", "/v1/files", form, "multipart/form-data; boundary=x");
    EXPECT_EQ(answer.status, 200) << answer.body;
    return nlohmann::json::parse(answer.body)["id"];
  }
  std::string create(const std::string& file, const std::string& endpoint) const {
    return ask("POST", "/v1/batches",
               {{"input_file_id", file}, {"endpoint", endpoint}, {"completion_window", "24h"}})["id"];
  }
  nlohmann::json batch(const std::string& id) const { return ask("GET", "/v1/batches/" + id); }
  // Waits for at least so many lines with results, or for the end of the batch.
  nlohmann::json wait(const std::string& id, int done) const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(5);
    nlohmann::json now;
    while (std::chrono::steady_clock::now() < end) {
      now = batch(id);
      const std::string status = now["status"];
      if (status != "validating" && status != "in_progress" && status != "finalizing" &&
          status != "cancelling")
        return now;
      if (now["request_counts"]["completed"].get<int>() + now["request_counts"]["failed"].get<int>() >= done)
        return now;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    ADD_FAILURE() << "no end: " << now.dump();
    return now;
  }
  nlohmann::json wait_for_end(const std::string& id) const { return wait(id, 1 << 30); }
  std::string content(const std::string& file) const {
    const TestAnswer answer = send("GET", "/v1/files/" + file + "/content");
    EXPECT_EQ(answer.status, 200) << answer.body;
    return answer.body;
  }
  // The results of a file by custom_id.
  std::map<std::string, nlohmann::json> results(const std::string& file) const {
    std::map<std::string, nlohmann::json> results;
    std::istringstream lines(content(file));
    for (std::string line; std::getline(lines, line);) {
      nlohmann::json result = nlohmann::json::parse(line);
      const std::string id = result["custom_id"];
      EXPECT_TRUE(results.emplace(id, std::move(result)).second) << id << " occurs twice";
    }
    return results;
  }

 private:
  int port_;
  std::string headers_;
};

inline std::string request_line(const std::string& id, const std::string& url, const nlohmann::json& body) {
  return nlohmann::json{{"custom_id", id}, {"method", "POST"}, {"url", url}, {"body", body}}.dump() + "\n";
}

}  // namespace outrider
