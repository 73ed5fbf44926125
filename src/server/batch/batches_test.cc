// SPDX-License-Identifier: Apache-2.0
#include "server/batch/batches.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <fstream>
#include <future>
#include <nlohmann/json.hpp>
#include <set>
#include <thread>

#include "server/api/answers/test_model.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

constexpr uint64_t kOwner = 7, kStranger = 8;

// An engine that answers lines when it is told to.
class HeldEngine {
 public:
  LineEngine engine(const ServedModel& model, int places) {
    const auto hold = [this](const std::string& id, std::unique_ptr<GenerationCall>, LineCalls::Done done) {
      const std::lock_guard lock(mutex_);
      held_.emplace_back(id, std::move(done));
      most_ = std::max(most_, held_.size());
      changed_.notify_all();
    };
    return {.places = places,
            .start = prepare_and(hold, {.model = &model, .limits = {}}),
            .cancel = [this](const std::string& id) {
              const std::lock_guard lock(mutex_);
              const auto found = std::ranges::find(held_, id, &Held::first);
              if (found == held_.end()) return;
              const LineCalls::Done done = std::move(found->second);
              held_.erase(found);
              done(std::nullopt);
            }};
  }
  // Answers the oldest line. False: none came within ten seconds.
  bool answer(std::optional<LineAnswer> answer = LineAnswer{.body = R"({"ok":true})"}) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, std::chrono::seconds(10), [this] { return !held_.empty(); })) return false;
    const LineCalls::Done done = std::move(held_.front().second);
    held_.pop_front();
    lock.unlock();
    done(std::move(answer));
    return true;
  }
  size_t most() const { return most_; }

 private:
  using Held = std::pair<std::string, LineCalls::Done>;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Held> held_;
  size_t most_ = 0;  // lines at a time
};

std::string input_line(const std::string& id, const std::string& url = "/v1/completions") {
  return R"({"custom_id":")" + id + R"(","method":"POST","url":")" + url +
         R"(","body":{"prompt":"a","max_tokens":2}})" + "\n";
}

std::string input_lines(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += input_line("line-" + std::to_string(i));
  return text;
}

class BatchesTest : public testing::Test {
 protected:
  BatchesTest() {
    std::string name = (fs::temp_directory_path() / "outrider_batches_XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) std::abort();
    folder_ = name;
    limits_.files.all_bytes = 1 << 20;
    limits_.files.file_bytes = 1 << 19;
  }
  ~BatchesTest() override {
    batches_.reset();
    fs::remove_all(folder_);
  }

  void open() {
    batches_.reset();
    auto opened = Batches::open(folder_, limits_, [this] { return clock_ms_.load(); });
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    batches_ = std::move(opened).value();
  }
  void open_and_start(int places = 4) {
    open();
    batches_->start(engine_.engine(model_.model(), places));
  }
  // Asks on the worker.
  template <typename Function>
  ApiResult<std::string> ask(Function&& function) {
    const auto promise = std::make_shared<std::promise<ApiResult<std::string>>>();
    batches_->worker().submit([&, promise] { promise->set_value(function(*batches_)); });
    return promise->get_future().get();
  }
  template <typename Function>
  json ask_json(Function&& function) {
    const auto text = ask(std::forward<Function>(function));
    EXPECT_TRUE(text.ok()) << text.error().message;
    return text.ok() ? json::parse(*text) : json();
  }
  template <typename Function>
  ApiError error_of(Function&& function) {
    const auto text = ask(std::forward<Function>(function));
    EXPECT_FALSE(text.ok()) << *text;
    return text.ok() ? ApiError() : text.error();
  }
  std::string upload(const std::string& text, uint64_t owner = kOwner) {
    return ask_json([&](Batches& b) { return b.create_file(owner, "in.jsonl", "batch", text); })["id"];
  }
  static std::string request(const std::string& file, const std::string& window = "24h") {
    return json{{"input_file_id", file},
                {"endpoint", "/v1/completions"},
                {"completion_window", window},
                {"metadata", {{"k", "v"}}}}
        .dump();
  }
  std::string create(const std::string& file, const std::string& window = "24h") {
    return ask_json([&](Batches& b) { return b.create_batch(kOwner, request(file, window)); })["id"];
  }
  json state(const std::string& id) {
    return ask_json([&](Batches& b) { return b.batch(kOwner, id); });
  }
  // Waits until the batch has the status.
  json wait_for(const std::string& id, const std::string& status) {
    json batch;
    for (int i = 0; i < 2000; ++i) {
      batch = state(id);
      if (batch["status"] == status) return batch;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    ADD_FAILURE() << "not " << status << ": " << batch.dump();
    return batch;
  }
  // The lines of a file.
  std::vector<json> lines(const json& file) {
    std::vector<json> lines;
    if (!file.is_string()) return lines;
    const auto read = ask([&](Batches& b) -> ApiResult<std::string> {
      const auto content = b.content(kOwner, file.get<std::string>());
      if (!content.ok()) return content.error();
      for (TextLines reader((*content)->text()); const auto line = reader.next();)
        lines.push_back(json::parse(*line));
      return std::string();
    });
    EXPECT_TRUE(read.ok());
    return lines;
  }
  static std::vector<std::string> ids_of(const std::vector<json>& lines) {
    std::vector<std::string> ids;
    for (const json& line : lines) ids.push_back(line["custom_id"]);
    return ids;
  }

  fs::path folder_;
  TestServedModel model_;
  HeldEngine engine_;
  Batches::Limits limits_;
  std::atomic<int64_t> clock_ms_ = 1'700'000'000'000;
  std::unique_ptr<Batches> batches_;
};

TEST_F(BatchesTest, RunsAllLinesAndKeepsFailedOnesApart) {
  open_and_start(2);
  const std::string file = upload(input_lines(5) + input_line("bad") + input_line("unparsed"));
  const std::string id = create(file);
  wait_for(id, "in_progress");
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(engine_.answer());
  ASSERT_TRUE(engine_.answer(LineAnswer{.status = 500, .body = R"({"error":{"message":"m"}})"}));
  ASSERT_TRUE(engine_.answer());
  const json batch = wait_for(id, "completed");
  EXPECT_EQ(batch["request_counts"], (json{{"total", 7}, {"completed", 6}, {"failed", 1}}));
  EXPECT_EQ(batch["object"], "batch");
  EXPECT_EQ(batch["metadata"], (json{{"k", "v"}}));
  EXPECT_EQ(batch["errors"], nullptr);
  EXPECT_EQ(batch["expires_at"], 1'700'000'000 + 86400);
  for (const char* time : {"created_at", "in_progress_at", "finalizing_at", "completed_at"})
    EXPECT_EQ(batch[time], 1'700'000'000) << time;
  for (const char* time : {"failed_at", "expired_at", "cancelling_at", "cancelled_at"})
    EXPECT_EQ(batch[time], nullptr) << time;
  const std::vector<json> output = lines(batch["output_file_id"]);
  ASSERT_EQ(output.size(), 6u);
  EXPECT_EQ(output[0]["response"]["body"], (json{{"ok", true}}));
  EXPECT_EQ(output[0]["error"], nullptr);
  const std::vector<json> errors = lines(batch["error_file_id"]);
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0]["response"]["status_code"], 500);
  EXPECT_EQ(engine_.most(), 2u);
  const BatchFigures figures = batches_->figures();
  EXPECT_EQ(figures.completed, 6);
  EXPECT_EQ(figures.failed, 1);
  EXPECT_EQ(figures.running, 0);
}

TEST_F(BatchesTest, ARequestThatIsRefusedFailsAlone) {
  open_and_start();
  const std::string id = create(upload(
      R"({"custom_id":"a","method":"POST","url":"/v1/completions","body":{"prompt":"a","temperature":9}})"));
  const json batch = wait_for(id, "completed");
  EXPECT_EQ(batch["output_file_id"], nullptr);
  const std::vector<json> errors = lines(batch["error_file_id"]);
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0]["response"]["status_code"], 400);
  EXPECT_EQ(errors[0]["response"]["body"]["error"]["param"], "temperature");
}

TEST_F(BatchesTest, AWrongInputFailsBeforeAnyLineRuns) {
  open_and_start();
  const std::string id =
      create(upload(input_line("a") + "{\n" + input_line("a") + input_line("b", "/v1/embeddings")));
  const json batch = wait_for(id, "failed");
  std::set<std::pair<int, std::string>> found;
  for (const json& error : batch["errors"]["data"])
    found.emplace(error["line"].get<int>(), error["code"].get<std::string>());
  EXPECT_EQ(found, (std::set<std::pair<int, std::string>>{
                       {2, "invalid_json_line"}, {3, "duplicate_custom_id"}, {4, "mismatched_url"}}));
  EXPECT_EQ(batch["failed_at"], 1'700'000'000);
  EXPECT_EQ(engine_.most(), 0u);
  limits_.lines = 3;
  open_and_start();
  EXPECT_EQ(state(id), batch);  // errors are kept, too
  EXPECT_EQ(wait_for(create(upload(input_lines(4))), "failed")["errors"]["data"][0]["code"],
            "too_many_tasks");
  EXPECT_EQ(wait_for(create(upload("\n \n")), "failed")["errors"]["data"][0]["code"], "empty_file");
}

TEST_F(BatchesTest, ARestartLosesNoLineAndRunsNoneTwice) {
  open_and_start(3);
  const std::string id = create(upload(input_lines(10)));
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(engine_.answer());
  while (state(id)["request_counts"]["completed"] != 4) std::this_thread::yield();
  batches_.reset();  // as a kill leaves the folder: lines of three requests are lost, and one is torn
  int torn = 0;
  for (const auto& entry : fs::directory_iterator(folder_ / "files")) {
    std::ifstream file(entry.path());
    std::string first;
    if (!std::getline(file, first) || !first.starts_with(kResultBeginning)) continue;
    std::ofstream(entry.path(), std::ios::app) << first.substr(0, 40);
    ++torn;
  }
  ASSERT_EQ(torn, 1);
  HeldEngine second;
  open();
  EXPECT_EQ(state(id)["status"], "in_progress");
  batches_->start(second.engine(model_.model(), 3));
  for (int i = 0; i < 6; ++i) ASSERT_TRUE(second.answer());
  const json batch = wait_for(id, "completed");
  EXPECT_EQ(batch["request_counts"], (json{{"total", 10}, {"completed", 10}, {"failed", 0}}));
  const std::vector<std::string> ids = ids_of(lines(batch["output_file_id"]));
  EXPECT_EQ(ids.size(), 10u);
  EXPECT_EQ(std::set<std::string>(ids.begin(), ids.end()).size(), 10u);
  open();
  EXPECT_EQ(state(id), batch);
  EXPECT_EQ(ids_of(lines(batch["output_file_id"])), ids);
}

// A server that drains gives lines no answers. They run again after the next start.
TEST_F(BatchesTest, LinesWithoutAnAnswerRunAgain) {
  open_and_start(2);
  const std::string id = create(upload(input_lines(3)));
  ASSERT_TRUE(engine_.answer());
  ASSERT_TRUE(engine_.answer(std::nullopt));
  ASSERT_TRUE(engine_.answer(std::nullopt));
  EXPECT_EQ(state(id)["status"], "in_progress");
  HeldEngine second;
  open();
  batches_->start(second.engine(model_.model(), 2));
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(second.answer());
  EXPECT_EQ(wait_for(id, "completed")["request_counts"]["completed"], 3);
}

TEST_F(BatchesTest, ACancelledBatchKeepsWhatIsDone) {
  open_and_start(2);
  const std::string id = create(upload(input_lines(5)));
  ASSERT_TRUE(engine_.answer());
  while (state(id)["request_counts"]["completed"] != 1) std::this_thread::yield();
  EXPECT_EQ(ask_json([&](Batches& b) { return b.cancel_batch(kOwner, id); })["status"], "cancelling");
  const json batch = wait_for(id, "cancelled");
  EXPECT_EQ(batch["request_counts"], (json{{"total", 5}, {"completed", 1}, {"failed", 4}}));
  EXPECT_EQ(lines(batch["output_file_id"]).size(), 1u);
  const std::vector<json> errors = lines(batch["error_file_id"]);
  ASSERT_EQ(errors.size(), 4u);
  EXPECT_EQ(errors[0]["response"], nullptr);
  EXPECT_EQ(errors[0]["error"]["code"], "batch_cancelled");
  EXPECT_EQ(error_of([&](Batches& b) { return b.cancel_batch(kOwner, id); }).status, 409);
}

TEST_F(BatchesTest, ABatchExpires) {
  open_and_start(2);
  const std::string file = upload(input_lines(3));
  const std::string id = create(file, "2h");
  ASSERT_TRUE(engine_.answer());
  while (state(id)["request_counts"]["completed"] != 1) std::this_thread::yield();
  clock_ms_ += 2 * 3600 * 1000;
  batches_->tick();
  const json batch = wait_for(id, "expired");
  EXPECT_EQ(lines(batch["output_file_id"]).size(), 1u);
  EXPECT_EQ(lines(batch["error_file_id"])[0]["error"]["code"], "batch_expired");
  for (const std::string window : {"", "h", "0h", "721h", "31d", "24", "-1h", "99999999999999999999h"})
    EXPECT_EQ(error_of([&](Batches& b) { return b.create_batch(kOwner, request(file, window)); }).param,
              "completion_window")
        << window;
}

TEST_F(BatchesTest, BatchesShareThePlaces) {
  open_and_start(2);
  const std::string first = create(upload(input_lines(20)));
  wait_for(first, "in_progress");
  const std::string second = create(upload(input_lines(2)));
  wait_for(second, "in_progress");
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(engine_.answer());
  EXPECT_EQ(wait_for(second, "completed")["request_counts"]["completed"], 2);
  EXPECT_EQ(state(first)["status"], "in_progress");
}

TEST_F(BatchesTest, FilesAndBatchesBelongToTheirKey) {
  open_and_start();
  const std::string file = upload(input_lines(1));
  const std::string id = create(file);
  EXPECT_EQ(error_of([&](Batches& b) { return b.file(kStranger, file); }).status, 404);
  EXPECT_EQ(error_of([&](Batches& b) { return b.erase_file(kStranger, file); }).status, 404);
  EXPECT_EQ(error_of([&](Batches& b) { return b.create_batch(kStranger, request(file)); }).param,
            "input_file_id");
  EXPECT_EQ(error_of([&](Batches& b) { return b.batch(kStranger, id); }).status, 404);
  EXPECT_EQ(error_of([&](Batches& b) { return b.cancel_batch(kStranger, id); }).status, 404);
  EXPECT_EQ(ask_json([&](Batches& b) { return b.list_files(kStranger, {}); })["data"], json::array());
  EXPECT_EQ(ask_json([&](Batches& b) { return b.list_batches(kStranger, {}); })["data"], json::array());
  EXPECT_EQ(error_of([&](Batches& b) { return b.erase_file(kOwner, file); }).code, "file_in_use");
  ASSERT_TRUE(engine_.answer());
  wait_for(id, "completed");
  EXPECT_EQ(ask_json([&](Batches& b) { return b.erase_file(kOwner, file); })["deleted"], true);
  EXPECT_EQ(error_of([&](Batches& b) { return b.file(kOwner, file); }).status, 404);
}

TEST_F(BatchesTest, EachLimitSaysSo) {
  limits_.files.files = 2;
  limits_.unended = 1;
  open();
  const auto add = [&](const std::string& text, const std::string& purpose = "batch") {
    return error_of([&](Batches& b) { return b.create_file(kOwner, "a", purpose, text); });
  };
  EXPECT_EQ(add(std::string((1 << 19) + 1, 'x')).code, "file_too_large");
  EXPECT_EQ(add("").code, "empty_file");
  EXPECT_EQ(add("x", "fine-tune").param, "purpose");
  const std::string file = upload(input_lines(2));
  EXPECT_EQ(upload(std::string(1 << 18, 'x')).substr(0, 5), "file-");
  EXPECT_EQ(add("x").code, "too_many_files");
  EXPECT_EQ(error_of([&](Batches& b) { return b.create_batch(kOwner, request(file)); }).code,
            "too_many_files");
  limits_.files.files = 100;
  open();
  create(file);
  EXPECT_EQ(error_of([&](Batches& b) { return b.create_batch(kOwner, request(file)); }).code,
            "too_many_batches");
  upload(std::string(1 << 19, 'x'));
  EXPECT_EQ(add(std::string(1 << 18, 'x')).code, "folder_full");
  EXPECT_EQ(add(std::string(1 << 18, 'x')).status, 429);
}

TEST_F(BatchesTest, TheOldestBatchesAreForgotten) {
  limits_.ended = 2;
  open();
  const std::string file = upload("{");
  std::vector<std::string> ids;
  for (int i = 0; i < 4; ++i) {
    clock_ms_ += 1000;
    ids.push_back(create(file));
    wait_for(ids.back(), "failed");
  }
  EXPECT_EQ(error_of([&](Batches& b) { return b.batch(kOwner, ids[0]); }).status, 404);
  EXPECT_EQ(state(ids[1])["status"], "failed");
}

TEST_F(BatchesTest, ListsComeInPages) {
  open();
  std::vector<std::string> ids;
  for (int i = 0; i < 5; ++i) {
    clock_ms_ += 1000;
    ids.push_back(upload("x"));
  }
  const auto page = [&](const ListQuery& query) {
    return ask_json([&](Batches& b) { return b.list_files(kOwner, query); });
  };
  EXPECT_EQ(page({})["data"].size(), 5u);
  EXPECT_EQ(page({})["first_id"], ids[4]);
  const json middle = page({.limit = "2", .after = ids[4], .order = "", .purpose = ""});
  EXPECT_EQ(middle["data"][0]["id"], ids[3]);
  EXPECT_EQ(middle["last_id"], ids[2]);
  EXPECT_EQ(middle["has_more"], true);
  EXPECT_EQ(page({.limit = "", .after = ids[3], .order = "asc", .purpose = "batch"})["data"][0]["id"],
            ids[4]);
  EXPECT_EQ(page({.limit = "", .after = "", .order = "", .purpose = "batch_output"})["data"], json::array());
  for (const ListQuery& query : {ListQuery{.limit = "0", .after = "", .order = "", .purpose = ""},
                                 ListQuery{.limit = "x", .after = "", .order = "", .purpose = ""},
                                 ListQuery{.limit = "", .after = "file-0", .order = "", .purpose = ""},
                                 ListQuery{.limit = "", .after = "", .order = "up", .purpose = ""}}) {
    EXPECT_EQ(error_of([&](Batches& b) { return b.list_files(kOwner, query); }).status, 400);
  }
}

TEST_F(BatchesTest, OneServerUsesAFolder) {
  open();
  const auto second = Batches::open(folder_, limits_, [] { return int64_t{0}; });
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(second.error().message, HasSubstr("another server uses"));
}

TEST_F(BatchesTest, WhatACrashLeavesOfAnUploadIsRemoved) {
  open();
  const std::string file = upload("x");
  batches_.reset();
  std::ofstream(folder_ / "files" / "file-0.jsonl") << "half";
  open();
  EXPECT_FALSE(fs::exists(folder_ / "files" / "file-0.jsonl"));
  EXPECT_EQ(ask_json([&](Batches& b) { return b.file(kOwner, file); })["bytes"], 1);
  batches_.reset();
  std::ofstream(folder_ / "files" / (file + ".json")) << "damaged";
  EXPECT_THAT(Batches::open(folder_, limits_, [] { return int64_t{0}; }).error().message, HasSubstr(file));
}

}  // namespace
}  // namespace outrider
