// SPDX-License-Identifier: Apache-2.0
#include "tests/program/program_fixture.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace outrider {

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

ProgramTest::ProgramTest() {
  std::string name = (std::filesystem::temp_directory_path() / "outrider_program_XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) std::abort();
  folder_ = name;
}

ProgramTest::~ProgramTest() {
  std::error_code error;
  std::filesystem::remove_all(folder_, error);
}

std::string ProgramTest::write(const std::string& name, const std::string& text) const {
  std::ofstream(folder_ / name, std::ios::binary) << text;
  return (folder_ / name).string();
}

std::string ProgramTest::chat_model() const {
  const std::filesystem::path model = folder_ / "chat-model";
  std::filesystem::create_directories(model);
  for (const char* name : {"config.json", "generation_config.json", "model.safetensors", "tokenizer.json"}) {
    std::filesystem::copy_file(std::filesystem::path(kModel) / name, model / name,
                               std::filesystem::copy_options::overwrite_existing);
  }
  Json config = Json::parse(contents(kModel + "/tokenizer_config.json"));
  config["chat_template"] =
      "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }} {% endfor %}assistant:";
  std::ofstream(model / "tokenizer_config.json") << config.dump();
  return model.string();
}

Outcome ProgramTest::run(const std::string& arguments, const std::string& before) const {
  const std::string out = (folder_ / "stdout").string();
  const std::string err = (folder_ / "stderr").string();
  const std::string line = before + " " OUTRIDER_PROGRAM " " + arguments + " >" + out + " 2>" + err;
  const int status = std::system(line.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, contents(out), contents(err)};
}

Json ProgramTest::run_json(const std::string& arguments, const std::string& before) const {
  const Outcome outcome = run(arguments, before);
  EXPECT_EQ(outcome.exit_code, 0) << arguments << ": " << outcome.errors;
  return Json::parse(outcome.output, nullptr, false);
}

void ProgramTest::expect_refused(const std::string& arguments, int exit_code, const std::string& part,
                                 const std::string& before) const {
  const Outcome outcome = run(arguments, before);
  EXPECT_EQ(outcome.exit_code, exit_code) << arguments << ": " << outcome.errors;
  EXPECT_EQ(outcome.output, "") << arguments;
  EXPECT_EQ(std::count(outcome.errors.begin(), outcome.errors.end(), '\n'), 1) << outcome.errors;
  EXPECT_TRUE(outcome.errors.starts_with("outrider: ")) << outcome.errors;
  EXPECT_NE(outcome.errors.find(part), std::string::npos) << arguments << ": " << outcome.errors;
}

void ProgramTest::expect_interrupt_ends_answer(const std::string& arguments) const {
  const std::string script = write("interrupt.sh", R"(
mkfifo "$1/in"
folder=$1 program=$2
shift 2
"$program" chat "$@" --speculative none --max-tokens 900 --ignore-eos <"$folder/in" >"$folder/out" 2>"$folder/err" &
chat=$!
exec 3>"$folder/in"
echo hello >&3
until [ -s "$folder/out" ] || ! kill -0 $chat; do sleep 0.05; done
kill -INT $chat
echo /stats >&3
exec 3>&-
wait $chat
)");
  const std::string line = "sh " + script + " " + folder_.string() + " " OUTRIDER_PROGRAM " " + arguments;
  EXPECT_EQ(std::system(line.c_str()), 0) << contents(folder_ / "err");
  const std::string stats = contents(folder_ / "err");
  ASSERT_TRUE(stats.starts_with("none: ")) << stats;
  EXPECT_LT(std::stoi(stats.substr(std::string("none: ").size())), 900) << stats;
}

}  // namespace outrider
