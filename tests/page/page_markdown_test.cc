// SPDX-License-Identifier: Apache-2.0
// Markdown on the chat page. The model is made to write each text, so that it comes as every answer does.
#include <gmock/gmock.h>

#include "tests/page/page_fixture.h"

namespace outrider {
namespace {

using ::testing::IsEmpty;

using PageMarkdownTest = PageTest;

TEST_F(PageMarkdownTest, IsShownAsElements) {
  force_answer(
      "# Title\n\nSome **bold**, *slanted*, ~~gone~~ and `code`; [a link](https://example.org/x?y=1).\n\n"
      "1. one\n2. two\n   - [x] done\n\n> quoted\n\n| a | b |\n|---|--:|\n| 1 | 2 |\n\n"
      "```cpp\nint main() { return 1; }  // <b>\n```\n\n```nothing\n<i>\n```\n");
  ask("Show me everything.");
  for (const char* selector :
       {"h3", "strong", "em", "del", "p > code", "ol > li", "ul > li", "blockquote", "table th",
        ".wide-table td.right", ".code .code-keyword", ".code .code-comment"})
    EXPECT_GE(value(std::string("count('.assistant .text ") + selector + "')"), 1) << selector;
  EXPECT_EQ(value("document.querySelector('.assistant a').outerHTML"),
            R"(<a href="https://example.org/x?y=1" title="https://example.org/x?y=1" target="_blank" )"
            R"(rel="noopener noreferrer nofollow">a link</a>)");
  EXPECT_EQ(value("[...document.querySelectorAll('.assistant pre')].map((each) => each.textContent)"),
            Json({"int main() { return 1; }  // <b>", "<i>"}));
  EXPECT_EQ(value("document.querySelector('.code-bar span').textContent"), "cpp");
  EXPECT_EQ(value("count('.assistant b, .assistant i')"), 0);
  take_picture("markdown");
  EXPECT_THAT(browser_->take_problems(), IsEmpty());
}

TEST_F(PageMarkdownTest, FormulasAreMathML) {
  force_answer(
      "So \\(a^2 + b^2 = c^2\\) and $x_1$, for $5 and $6.\n\n$$\n\\int_0^1 x\\,dx = \\frac{1}{2}\n$$\n\n"
      "\\[ \\begin{pmatrix} 1 & 2 \\\\ 3 & 4 \\end{pmatrix} \\]\n\n`$code$` and \\(\\nosuch{\\)\n");
  ask("Show me formulas.");
  EXPECT_EQ(value("count('.assistant .text math')"), 4);
  EXPECT_EQ(value("count('.assistant .text .formula math[display=block]')"), 2);
  EXPECT_EQ(value("count('.assistant .text mtable mtr')"), 2);
  EXPECT_EQ(value("document.querySelector('.assistant .text').textContent.includes('for $5 and $6.')"), true);
  EXPECT_EQ(value("[...document.querySelectorAll('.assistant .text p > code, .assistant .text span > code')]"
                  ".map((each) => each.textContent)"),
            Json({"$code$", "\\nosuch{"}));
  take_picture("formulas");
  EXPECT_THAT(browser_->take_problems(), IsEmpty());
}

TEST_F(PageMarkdownTest, FormulasCannotLoadOrLink) {
  force_answer(
      "$\\href{javascript:window.hacked=1}{x}$ $\\url{https://example.org}$ $\\htmlId{messages}{x}$ "
      "$\\includegraphics{https://example.org/x.png}$ $\\htmlStyle{display:none}{y}$ "
      "$\\def\\a{\\a\\a}\\a$ $" +
      std::string(3000, '{') + "$\n");
  ask("Show me hostile formulas.");
  EXPECT_EQ(
      value("count('#messages .text a, #messages .text img, #messages .text [id], #messages .text [href], "
            "#messages .text [src]')"),
      0);
  EXPECT_EQ(value("window.hacked === undefined"), true);
  EXPECT_THAT(browser_->take_problems(), IsEmpty());
}

const char* const kHostile[] = {
    "<script>window.hacked = 1</script>",
    "<img src=x onerror='window.hacked = 2'>",
    "<svg onload=window.hacked=3><a xlink:href='javascript:window.hacked=4'>x</a></svg>",
    "<iframe srcdoc='<script>parent.hacked=5</script>'></iframe>",
    "[link](javascript:window.hacked=6) [two](JaVaScRiPt&colon;window.hacked=7) "
    "[three](data:text/html,<script>)",
    "![picture](https://example.org/secret.png \"x\\\" onerror=window.hacked=8\")",
    "<style>* { display: none }</style><link rel=stylesheet href=https://example.org/x.css>",
    "<form action=https://example.org><input name=x><button>Go</button></form>",
    "<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src=1 "
    "onerror=window.hacked=9&gt;'>",
    "<a href='x' id=messages name=forms onclick=window.hacked=10>clobber</a>",
    "```\"><img src=x onerror=window.hacked=11>\ncode\n```",
    "```html\n<script>window.hacked = 12</script><img src=x onerror=window.hacked=13>\n```",
    "[x]: javascript:window.hacked=14 'title'\n\n[x] <javascript:window.hacked=15>",
    "<base href=https://example.org/><meta http-equiv=refresh content='0;url=https://example.org'>",
};

// Nothing but text and the elements of Markdown.
constexpr char kForeign[] =
    "['script', 'img', 'svg', 'iframe', 'style', 'link', 'form', 'input', 'math', 'object', 'base', 'meta', "
    "'[id]', "
    "'[name]', '[style]', '[onerror]', '[onclick]', '[onload]', '[src]'].filter((each) => count('#messages "
    ".text ' + each) > 0)"
    ".concat([...document.querySelectorAll('#messages a[href]')].map((each) => each.protocol)"
    ".filter((each) => !['https:', 'http:', 'mailto:'].includes(each)))";

TEST_F(PageMarkdownTest, NothingHostileRuns) {
  for (const char* text : kHostile) {
    value("press('new')");
    force_answer(text);
    ask("Attack");
    EXPECT_EQ(value("count('.message.assistant')"), 1) << value("text('messages')");
    for (int i = 0; i < 2; ++i) {  // as Markdown and as tokens
      EXPECT_EQ(value(kForeign), Json::array())
          << text << "\n"
          << value("document.querySelector('.assistant .text').innerHTML");
      value("press('marks')");
    }
  }
  reload();
  value("panels.show('archive')");
  for (size_t i = 0; i < std::size(kHostile); ++i) {
    value("document.querySelectorAll('#list .entry')[" + std::to_string(i) + "].click()");
    EXPECT_EQ(value(kForeign), Json::array()) << i;
  }
  EXPECT_EQ(value("typeof window.hacked"), "undefined");
  EXPECT_EQ(value("performance.getEntriesByType('resource').filter((each) => "
                  "!each.name.startsWith(location.origin)).length"),
            0);
  EXPECT_THAT(browser_->take_problems(), IsEmpty());  // no policy had to stop anything
}

TEST_F(PageMarkdownTest, EveryBeginningOfAHostileTextIsSafe) {  // as in a stream
  for (const char* text : kHostile) {
    value(
        "{ const box = document.createElement('div'); box.className = 'text'; "
        "document.getElementById('messages').append(box);"
        " const all = " +
        Json(text).dump() +
        "; window.wrong = [];"
        " for (let i = 1; i <= all.length; ++i) { markdown.show(box, all.slice(0, i)); wrong.push(..." +
        kForeign + "); } }");
    EXPECT_EQ(value("wrong"), Json::array()) << text;
  }
  EXPECT_EQ(value("typeof window.hacked"), "undefined");
  EXPECT_THAT(browser_->take_problems(), IsEmpty());
}

TEST_F(PageMarkdownTest, ThePolicyStopsWhatIsNotSanitised) {
  EXPECT_EQ(value("(() => { try { document.body.innerHTML = '<b>x</b>'; return 'taken'; } catch { return "
                  "'refused'; } })()"),
            "refused");
  EXPECT_EQ(value("(() => { try { trustedTypes.createPolicy('mine', {}); return 'made'; } catch { return "
                  "'refused'; } })()"),
            "refused");
}

// Texts that cost much time in bad parsers.
TEST_F(PageMarkdownTest, LongTextsTakeLittleTime) {
  for (const char* expression :
       {"'*a '.repeat(20000)", "'['.repeat(5000)", "'`'.repeat(20001)", "'> '.repeat(2000) + 'x'",
        "'|'.repeat(5000)", "'```cpp\\n' + '\"\\\\'.repeat(9000)", "'- '.repeat(500) + 'x'"}) {
    const double ms =
        value(std::string(
                  "(() => { const start = performance.now(); markdown.show(document.createElement('div'), ") +
              expression + "); return performance.now() - start; })()");
    EXPECT_LT(ms, 5000) << expression;
  }
}

}  // namespace
}  // namespace outrider
