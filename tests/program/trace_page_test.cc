// SPDX-License-Identifier: Apache-2.0
// The trace page in a headless Chromium: it opens without errors, shows the trace, steps by keys, and shows
// hostile text as text. Skipped if there is no Chromium.
#include "cli/reports/trace_html.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

namespace outrider {
namespace {

using Json = nlohmann::ordered_json;

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string chromium() {
  for (const char* name : {"chromium", "chromium-browser", "google-chrome"}) {
    if (std::system((std::string("command -v ") + name + " >/dev/null 2>&1").c_str()) == 0) return name;
  }
  return "";
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

constexpr std::string_view kWatch = R"(<script>
window.problems = [];
window.alert = () => problems.push("alert");
console.error = (...parts) => problems.push(parts.join(" "));
addEventListener("error", (event) => problems.push(String(event.message)), true);
</script>)";

class TracePageTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* info = ::testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::temp_directory_path() / (std::string("outrider_page_") + info->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    browser_ = chromium();
    if (browser_.empty()) GTEST_SKIP() << "no chromium on this machine: the page is not opened";
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // The DOM of the page after its scripts have run. Fails if they write to the console.
  std::string opened(const std::string& page) const {
    const std::string file = (folder_ / "page.html").string();
    std::ofstream(file, std::ios::binary) << page;
    const std::string out = (folder_ / "dom").string(), err = (folder_ / "err").string();
    const std::string line =
        "timeout 120 " + browser_ + " --headless --no-sandbox --disable-gpu --disable-dev-shm-usage " +
        "--enable-logging=stderr --virtual-time-budget=5000 --user-data-dir=" +
        (folder_ / "profile").string() + " --dump-dom file://" + file + " >" + out + " 2>" + err;
    EXPECT_EQ(std::system(line.c_str()), 0) << contents(err);
    EXPECT_EQ(contents(err).find("CONSOLE"), std::string::npos) << contents(err);
    return contents(out);
  }

  // Opens the page, runs `script` as the body of a function, and returns its result; "problems" lists errors.
  // The page's policy would refuse the script, so it is removed.
  Json drive(std::string page, const std::string& script) const {
    const size_t policy = page.find("<meta http-equiv=\"Content-Security-Policy\"");
    page.erase(policy, page.find('>', policy) + 1 - policy);
    page.insert(page.find("<meta"), kWatch);
    page.insert(page.rfind("</body>"), "<script>(() => {\nconst outcome = (() => {" + script + R"(})();
      const report = document.createElement("pre");
      report.id = "outcome";
      report.textContent = JSON.stringify({...outcome, problems});
      document.body.append(report);
    })();</script>)");
    const std::string dom = opened(page);
    const std::string begin = "<pre id=\"outcome\">";
    const size_t at = dom.find(begin);
    if (at == std::string::npos) {
      ADD_FAILURE() << "the page did not run";
      return Json::object();
    }
    std::string text = dom.substr(at + begin.size(), dom.find("</pre>", at) - at - begin.size());
    for (const auto& [from, to] : {std::pair{"&lt;", "<"}, {"&gt;", ">"}, {"&amp;", "&"}})
      replace_all(text, from, to);
    return Json::parse(text);
  }

  std::filesystem::path folder_;
  std::string browser_;
};

const std::string kDefinitions = R"(
  const text = (id) => document.getElementById(id).textContent;
  const press = (key) => document.body.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true, cancelable: true}));
  const nodes = () => [...document.querySelectorAll("#tree .node")].map((node) => node.getAttribute("aria-label"));
)";

// Steps through the trace by keys, button and slider, and returns what the page shows.
const std::string kKeySteps = R"(
    press("Home");
    const first = {title: text("step-title"), nodes: nodes().length};
    press("ArrowRight");
    const second = {title: text("step-title"), nodes: nodes(), slider: document.getElementById("slider").value};
    press("ArrowRight");
    const third = {title: text("step-title"), nodes: nodes()};
    press("ArrowLeft");
    const back = nodes();
    press("End");
    const last = text("step-title");
    press("ArrowRight");
    const beyond = text("step-title");
    document.querySelector("#previous").click();
    const slider = document.getElementById("slider");
    slider.value = 1;
    slider.dispatchEvent(new Event("input"));
    press("ArrowRight");
    document.querySelectorAll("#tree .node")[1].dispatchEvent(new Event("focus"));
    return {first, second, third, back, last, beyond, details: text("details"), totals: text("totals"),
            bars: document.querySelectorAll("#timeline svg > g").length, slid: text("step-title"),
            charts: [...document.querySelectorAll("#charts figure")].map((figure) => figure.textContent)};)";

TEST_F(TracePageTest, ShowsARunAndStepsByKeys) {
  const std::string page = (folder_ / "trace.html").string(), out = (folder_ / "json").string();
  const std::string models = OUTRIDER_SOURCE_DIR "/models/";
  const std::string line =
      OUTRIDER_PROGRAM " generate " + models +
      "outrider-small -p 'Once upon a time' --max-tokens 40 --temperature 0.8 --seed 3 "
      "--top-p 0.8 --json --show-tree --trace " +
      page + " --speculative draft_target,policy=fixed,expansion=[2,2],speculative_model=" + models +
      "outrider-draft >" + out;
  ASSERT_EQ(std::system(line.c_str()), 0);
  const Json trace = Json::parse(contents(out))["trace"];
  EXPECT_NE(opened(contents(page)).find("<rect"), std::string::npos) << "drawn under its own policy";
  const size_t steps = trace["steps"].size();
  Json outcome = drive(contents(page), kDefinitions + kKeySteps);
  EXPECT_EQ(outcome["problems"], Json::array());
  const std::string of = " of " + std::to_string(steps);
  EXPECT_EQ(outcome["first"]["title"], "Step 1" + of);
  EXPECT_EQ(outcome["second"]["title"], "Step 2" + of);
  EXPECT_EQ(outcome["second"]["slider"], "2");
  const Json& drafted = trace["steps"][1]["nodes"];
  EXPECT_EQ(outcome["second"]["nodes"].size(), drafted["tokens"].size() + 1);  // and the target's own token
  EXPECT_EQ(outcome["third"]["title"], "Step 3" + of);
  EXPECT_NE(outcome["third"]["nodes"], outcome["second"]["nodes"]);
  EXPECT_EQ(outcome["back"], outcome["second"]["nodes"]);
  EXPECT_EQ(outcome["last"], "Step " + std::to_string(steps) + of);
  EXPECT_EQ(outcome["beyond"], outcome["last"]);
  EXPECT_EQ(outcome["slid"], "Step 2" + of);
  EXPECT_EQ(outcome["bars"], steps);
  EXPECT_NE(outcome["details"].get<std::string>().find("target's probability"), std::string::npos);
  EXPECT_NE(outcome["totals"].get<std::string>().find("tokens40"), std::string::npos) << outcome["totals"];
  ASSERT_EQ(outcome["charts"].size(), 4u);
  EXPECT_NE(outcome["charts"][0].get<std::string>().find("depth 2"), std::string::npos);
  EXPECT_NE(outcome["charts"][1].get<std::string>().find("DraftTarget"), std::string::npos);
  EXPECT_NE(outcome["charts"][2].get<std::string>().find("3 tokens"), std::string::npos);
  EXPECT_NE(outcome["charts"][3].get<std::string>().find("1st"), std::string::npos);
}

// A synthetic trace: `steps` steps, each with a rejected, an accepted and a cut node.
Json made_trace(int steps, const std::string& text) {
  Json trace = {{"model", text},    {"weights", "bf16"}, {"kernels", "avx2"},
                {"threads", 1},     {"method", text},    {"sources", {text, "second"}},
                {"acceptance", ""}, {"temperature", 0},  {"top_k", 0},
                {"top_p", 1},       {"min_p", 0},        {"seed", 0},
                {"device", "cuda"}, {"runs", {text}},    {"token_texts", {{"1", text}, {"2", "b"}}}};
  const Json nodes = {{"tokens", {1, 1, 2, 2}},
                      {"parents", {-1, 0, 0, 2}},
                      {"draft", {1, 0.5, 0.25, 0.125}},
                      {"target", {nullptr, 0.2, 0.7, 0.1}},
                      {"sources", {1, 1, 3, 2}},
                      {"fates", {"accepted", "rejected", "accepted", "over budget"}},
                      {"causes", {"", "lost arg-max", "", "over budget"}}};
  const Json committed = {
      {"tokens", {2, 1}}, {"origins", {"accepted", "bonus"}}, {"target", {0.7, 0.9}}, {"ranks", {1, -1}}};
  for (int i = 0; i < steps; ++i) {
    trace["steps"].push_back(
        {{"run", 0},
         {"step", i},
         {"start_ms", i},
         {"draft_ms", 0.25},
         {"verify_ms", 0.5},
         {"other_ms", 0.25},
         {"sequences", 1},
         {"rows", 3},
         {"prompt_rows", 0},
         {"context", 10 + 2 * i},
         {"device",
          {{"lists", 2}, {"launches", 1}, {"bytes_to", 1500}, {"bytes_from", 64}, {"waited_ms", 0.4}}},
         {"draft_failed", false},
         {"nodes", nodes},
         {"committed", committed}});
  }
  return trace;
}

TEST_F(TracePageTest, ShowsHostileTextAsText) {
  const std::string hostile =
      "</script><script>alert(1)</script><img src=x onerror=alert(2)><!--<script>&amp;\u2028\"'`${alert(3)}";
  Json outcome = drive(trace_html(made_trace(2, hostile)), kDefinitions + R"(
    press("ArrowRight");
    return {images: document.querySelectorAll("img").length, scripts: document.scripts.length,
            committed: document.querySelector("#text .bonus").textContent, nodes: nodes(), about: text("about"),
            charts: text("charts")};)");
  EXPECT_EQ(outcome["problems"], Json::array());
  EXPECT_EQ(outcome["images"], 0);
  EXPECT_EQ(outcome["scripts"], 4);  // data, page, and two of this test
  EXPECT_EQ(outcome["committed"], hostile);
  EXPECT_NE(outcome["about"].get<std::string>().find(hostile), std::string::npos);
  EXPECT_NE(outcome["nodes"][1].get<std::string>().find("<img src=x"), std::string::npos);
}

TEST_F(TracePageTest, CountsByDepthDrafterLengthAndRank) {
  Json outcome = drive(trace_html(made_trace(3, "first")), kDefinitions + R"(
    const labels = [...document.querySelectorAll("#charts svg")].map((svg) => svg.getAttribute("aria-label"));
    return {labels, nodes: nodes(), totals: text("totals"), facts: text("facts"), about: text("about"),
            causes: [...document.querySelectorAll("#tree .node")].map((node) => node.dataset.cause || "")};)");
  EXPECT_EQ(outcome["problems"], Json::array());
  EXPECT_EQ(outcome["labels"][0], "Acceptance by depth. depth 1: 50.0 % of 6");
  EXPECT_EQ(outcome["labels"][1], "Acceptance by drafter. first: 50.0 % of 6; second: 100.0 % of 3");
  EXPECT_EQ(outcome["labels"][2], "Tokens committed per step. 2 tokens: 3 (100.0 %)");
  EXPECT_EQ(outcome["labels"][3], "Rank of the target's token. 2nd: 3 (100.0 %)");
  EXPECT_EQ(outcome["causes"], Json({"", "lost arg-max", "", "over budget", ""}));
  EXPECT_NE(outcome["totals"].get<std::string>().find("tokens per second2000.0"), std::string::npos);
  EXPECT_NE(outcome["totals"].get<std::string>().find("acceptance length2.00"), std::string::npos);
  EXPECT_NE(outcome["totals"].get<std::string>().find("time waiting for the device40.0 %"),
            std::string::npos);
  EXPECT_NE(outcome["about"].get<std::string>().find("cuda device"), std::string::npos) << outcome["about"];
  const std::string orders =
      "to the device: 2 recorded lists, 1 single kernel, 1.5 KB there, 0.1 KB back, 0.4 ms waited for it";
  EXPECT_NE(outcome["facts"].get<std::string>().find(orders), std::string::npos) << outcome["facts"];
}

TEST_F(TracePageTest, OneStepAndThousands) {
  for (const int steps : {1, 5000}) {
    Json outcome = drive(trace_html(made_trace(steps, "a")), kDefinitions + R"(
      press("End");
      return {title: text("step-title"), bars: document.querySelectorAll("#timeline svg > g").length};)");
    EXPECT_EQ(outcome["problems"], Json::array());
    EXPECT_EQ(outcome["title"], "Step " + std::to_string(steps) + " of " + std::to_string(steps));
    EXPECT_LE(outcome["bars"], 250);
  }
}

TEST(TracePage, NeedsNothingElse) {
  std::string page = trace_html(made_trace(1, "</script>"));
  EXPECT_EQ(page.find("{{data}}"), std::string::npos);
  EXPECT_EQ(page.find("</script>\""), std::string::npos);
  replace_all(page, "http://www.w3.org/2000/svg", "");
  for (const char* part : {"http:", "https:", "src=", "@import", "url("})
    EXPECT_EQ(page.find(part), std::string::npos) << part;
}

}  // namespace
}  // namespace outrider
