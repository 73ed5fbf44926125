// SPDX-License-Identifier: Apache-2.0
// `outrider batch`: a file of requests, answered without a server.
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>

#include "tests/program/program_fixture.h"

namespace outrider {
namespace {

std::string batch_line(const std::string& id, const Json& body, const std::string& url = "/v1/completions") {
  return Json{{"custom_id", id}, {"method", "POST"}, {"url", url}, {"body", body}}.dump() + "\n";
}

std::map<std::string, Json> results_in(const std::string& text) {
  std::map<std::string, Json> results;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const Json result = Json::parse(line);
    const std::string id = result["custom_id"].is_null() ? "" : result["custom_id"].get<std::string>();
    EXPECT_TRUE(results.emplace(id, result).second) << line;
  }
  return results;
}

std::string text_in(const Json& result) { return result["response"]["body"]["choices"][0]["text"]; }

TEST_F(ProgramTest, BatchAnswersEveryLine) {
  std::string lines;
  for (int i = 0; i < 6; ++i) {
    lines += batch_line(
        "r" + std::to_string(i),
        {{"prompt", "Once " + std::to_string(i)}, {"max_tokens", 6}, {"temperature", i % 2}, {"seed", i}});
  }
  const std::string file = write("in.jsonl", lines);
  const Outcome plain = run("batch " + file + " " + kModel + " --speculative none --max-batch 2");
  ASSERT_EQ(plain.exit_code, 0) << plain.errors;
  EXPECT_NE(plain.errors.find("6 of 6 done"), std::string::npos) << plain.errors;
  const auto results = results_in(plain.output);
  ASSERT_EQ(results.size(), 6u);
  const std::string out = (folder_ / "out.jsonl").string();
  const Outcome drafted =
      run("run-batch --model " + kModel + " -o " + out + " -i - --speculative ngram", "cat " + file + " |");
  ASSERT_EQ(drafted.exit_code, 0) << drafted.errors;
  EXPECT_EQ(drafted.output, "");
  for (const auto& [id, result] : results_in(contents(out))) {
    EXPECT_EQ(result["response"]["status_code"], 200);
    EXPECT_EQ(text_in(result), text_in(results.at(id))) << id;
  }
}

TEST_F(ProgramTest, BatchGoesOnWhereItWasEnded) {
  std::string lines;
  for (int i = 0; i < 5; ++i)
    lines +=
        batch_line("r" + std::to_string(i), {{"prompt", "a"}, {"max_tokens", 2 + i}, {"temperature", 0}});
  const std::string command =
      "batch " + write("in.jsonl", lines) + " " + kModel + " -o " + (folder_ / "out").string();
  ASSERT_EQ(run(command).exit_code, 0);
  const std::string whole = contents(folder_ / "out");
  // Two answers, a request that failed, and a line that was cut off.
  const size_t second = whole.find('\n', whole.find('\n') + 1) + 1;
  const std::string kept = whole.substr(0, second);
  const std::string failed =
      R"({"id":"batch_req_0","custom_id":"r9","response":{"status_code":500,"body":{}},"error":null})"
      "\n";
  write("out", kept + failed + whole.substr(second, 50));
  const Outcome again = run(command);
  EXPECT_EQ(again.exit_code, 0) << again.errors;
  EXPECT_NE(again.errors.find("5 of 5 done, 2 of them before"), std::string::npos) << again.errors;
  EXPECT_TRUE(contents(folder_ / "out").starts_with(kept));
  const auto results = results_in(contents(folder_ / "out"));
  EXPECT_EQ(results.size(), 5u);
  for (const auto& [id, result] : results_in(whole)) EXPECT_EQ(text_in(results.at(id)), text_in(result));
}

TEST_F(ProgramTest, BatchKeepsWhatIsDoneWhenItIsInterrupted) {
  std::string lines;
  for (int i = 0; i < 400; ++i)
    lines +=
        batch_line("r" + std::to_string(i), {{"prompt", "a"}, {"max_tokens", 100}, {"ignore_eos", true}});
  write("in.jsonl", lines);
  const std::string script = write("interrupt.sh", R"(
"$2" batch "$1/in.jsonl" "$3" -o "$1/out" --max-batch 1 --speculative none --kernels reference 2>"$1/err" &
batch=$!
until [ -s "$1/out" ] || ! kill -0 $batch; do sleep 0.01; done
kill -INT $batch
wait $batch
)");
  const int status =
      std::system(("bash " + script + " " + folder_.string() + " " OUTRIDER_PROGRAM " " + kModel).c_str());
  EXPECT_EQ(WEXITSTATUS(status), 1);
  EXPECT_NE(contents(folder_ / "err").find("interrupted; the same command goes on"), std::string::npos)
      << contents(folder_ / "err");
  const size_t done = results_in(contents(folder_ / "out")).size();
  EXPECT_GE(done, 1u);
  EXPECT_LT(done, 400u);
}

TEST_F(ProgramTest, BatchTellsOfWrongLinesAndGoesOn) {
  const std::string good = batch_line("a", {{"prompt", "a"}, {"max_tokens", 1}});
  const std::string file =
      write("in.jsonl", good + "{\n" + good + batch_line("s", {{"prompt", "a"}, {"stream", true}}) +
                            batch_line("t", {{"prompt", "a"}, {"temperature", -1}}) +
                            batch_line("u", {{"prompt", "a"}}, "/v1/models") +
                            batch_line("m", {{"prompt", "a"}, {"model", "gpt-4"}}));
  const Outcome outcome = run("batch " + file + " " + kModel + " --speculative none");
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.errors.find("6 requests failed"), std::string::npos) << outcome.errors;
  std::map<std::string, std::string> codes;
  int answers = 0;
  std::istringstream lines(outcome.output);
  for (std::string line; std::getline(lines, line);) {
    const Json result = Json::parse(line);
    if (!result["error"].is_null()) {
      codes[result["error"]["code"]] = result["error"]["message"];
    } else {
      const int status = result["response"]["status_code"];
      codes[std::to_string(status)] = result["custom_id"];
      answers += status == 200 ? 1 : 0;
    }
  }
  EXPECT_EQ(answers, 1);
  EXPECT_EQ(codes["400"], "t");
  EXPECT_EQ(codes["404"], "m");
  EXPECT_TRUE(codes["invalid_json_line"].starts_with("line 2: ")) << codes["invalid_json_line"];
  EXPECT_TRUE(codes["duplicate_custom_id"].starts_with("line 3: "));
  EXPECT_TRUE(codes.contains("invalid_request"));
  EXPECT_TRUE(codes.contains("invalid_url"));
}

TEST_F(ProgramTest, BatchRefusesWhatItCannotUse) {
  const std::string file = write("in.jsonl", batch_line("a", {{"prompt", "a"}}));
  expect_refused("batch '' " + kModel, 2, "expected a FILE");
  expect_refused("batch " + (folder_ / "none").string() + " " + kModel, 1, "none");
  expect_refused("batch " + file + " " + kModel + " -o " + file, 1, "expected a file of results");
  EXPECT_EQ(contents(file), batch_line("a", {{"prompt", "a"}}));
  expect_refused("batch " + file + " " + kModel + " --port 80", 2, "--port");
}

}  // namespace
}  // namespace outrider
