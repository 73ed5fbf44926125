// SPDX-License-Identifier: Apache-2.0
#include "cli/line_reader.h"

#include <histedit.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <utility>

#include "base/interrupt_guard.h"
#include "cli/terminal.h"

namespace outrider {
namespace {

constexpr int kHistoryLines = 1000;
constexpr std::string_view kFence = "\"\"\"";
// Terminals put a paste between two marks where they are asked to.
constexpr std::string_view kMarkPastes = "\x1b[?2004h", kMarkNoPastes = "\x1b[?2004l";
constexpr std::wstring_view kPasteEnd = L"\x1b[201~";

void drop_end(std::string& line) {
  while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.pop_back();
}

class PlainReader final : public LineReader {
 public:
  LineEnd read(std::string_view, std::string& line) override {
    if (!std::getline(std::cin, line)) return LineEnd::kEndOfInput;
    drop_end(line);
    return LineEnd::kLine;
  }
  void remember(const std::string&) override {}
};

// Waits for one byte of the terminal. False: the input ended, or Ctrl-C came, which libedit would not tell.
bool read_byte(unsigned char& byte) {
  while (!InterruptGuard::interrupted()) {
    pollfd input = {.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
    // The time bounds how long a signal between the two lines above is not seen.
    if (poll(&input, 1, 200) <= 0) continue;
    return ::read(STDIN_FILENO, &byte, 1) == 1;
  }
  return false;
}

// One character in UTF-8, as libedit's EL_GETCFN asks: 1, or 0 at the end. Bytes that are no UTF-8 become
// U+FFFD.
int read_character(EditLine*, wchar_t* character) {
  unsigned char byte = 0;
  if (!read_byte(byte)) return 0;
  const int more = byte < 0x80 ? 0 : byte >> 5 == 6 ? 1 : byte >> 4 == 14 ? 2 : byte >> 3 == 30 ? 3 : -1;
  wchar_t value = more == 0 ? byte : byte & (0x3F >> more);
  for (int i = 0; i < more; ++i) {
    if (!read_byte(byte)) return 0;
    value = byte >> 6 == 2 && value != 0xFFFD ? value << 6 | (byte & 0x3F) : 0xFFFD;
  }
  *character = more < 0 ? 0xFFFD : value;
  return 1;
}

// A pasted text is one insertion, and its lines do not end the message.
unsigned char insert_paste(EditLine* editor, wint_t) {
  std::wstring text;
  for (wchar_t character = 0; !text.ends_with(kPasteEnd);) {
    if (read_character(editor, &character) != 1) return CC_EOF;
    text += character == L'\r' ? L'\n' : character;
  }
  text.resize(text.size() - kPasteEnd.size());
  return !text.empty() && el_winsertstr(editor, text.c_str()) != 0 ? CC_ERROR : CC_REFRESH;
}

const char* prompt_of(EditLine* editor) {
  void* data = nullptr;
  el_get(editor, EL_CLIENTDATA, &data);
  return static_cast<const std::string*>(data)->c_str();
}

class TerminalReader final : public LineReader {
 public:
  explicit TerminalReader(std::filesystem::path file) : file_(std::move(file)) {
    // libedit counts the columns of characters by the locale.
    if (std::setlocale(LC_CTYPE, "C.UTF-8") == nullptr) std::setlocale(LC_CTYPE, "");
    editor_ = el_init("outrider", stdin, stderr, stderr);
    history_ = history_init();
    HistEvent event;
    history(history_, &event, H_SETSIZE, kHistoryLines);
    history(history_, &event, H_SETUNIQUE, 1);
    if (!file_.empty()) history(history_, &event, H_LOAD, file_.c_str());
    el_set(editor_, EL_CLIENTDATA, &prompt_);
    el_set(editor_, EL_PROMPT, prompt_of);
    el_set(editor_, EL_SIGNAL, 0);
    el_set(editor_, EL_HIST, history, history_);
    el_set(editor_, EL_EDITOR, "emacs");
    el_set(editor_, EL_BIND, "^R", "em-inc-search-prev", nullptr);
    el_set(editor_, EL_BIND, "\\e[3~", "ed-delete-next-char", nullptr);
    el_set(editor_, EL_BIND, "\\e[1;5C", "em-next-word", nullptr);
    el_set(editor_, EL_BIND, "\\e[1;5D", "ed-prev-word", nullptr);
    el_wset(editor_, EL_ADDFN, L"outrider-paste", L"inserts a pasted text", insert_paste);
    el_set(editor_, EL_BIND, "\\e[200~", "outrider-paste", nullptr);
    el_wset(editor_, EL_GETCFN, read_character);
    el_source(editor_, nullptr);  // the user's own keys, ~/.editrc
  }
  ~TerminalReader() override {
    history_end(history_);
    el_end(editor_);
  }
  TerminalReader(const TerminalReader&) = delete;
  TerminalReader& operator=(const TerminalReader&) = delete;

  LineEnd read(std::string_view prompt, std::string& line) override {
    prompt_ = prompt;
    el_resize(editor_);
    int count = 0;
    const InterruptGuard guard({SIGINT});
    // By itself libedit takes the keys over only after the prompt: who is fast would type for the terminal.
    el_set(editor_, EL_PREP_TERM, 1);
    write_error_text(kMarkPastes);
    const char* text = el_gets(editor_, &count);
    write_error_text(kMarkNoPastes);
    const bool is_line = text != nullptr && std::string_view(text).ends_with('\n');
    // Ctrl-C after the end of the line is meant for the answer.
    if (InterruptGuard::interrupted() && !is_line) {
      el_reset(editor_);
      write_error_text("\n");
      return LineEnd::kInterrupted;
    }
    if (text == nullptr || count <= 0) {
      write_error_text("\n");
      return LineEnd::kEndOfInput;
    }
    line.assign(text);
    drop_end(line);
    return LineEnd::kLine;
  }

  void remember(const std::string& line) override {
    HistEvent event;
    history(history_, &event, H_ENTER, line.c_str());
    if (file_.empty()) return;
    const mode_t before = umask(0077);  // others may not read what was said
    history(history_, &event, H_SAVE, file_.c_str());
    umask(before);
  }

 private:
  std::filesystem::path file_;
  std::string prompt_;
  EditLine* editor_ = nullptr;
  History* history_ = nullptr;
};

}  // namespace

std::unique_ptr<LineReader> LineReader::open(const std::filesystem::path& history) {
  if (input_is_terminal() && error_is_terminal()) return std::make_unique<TerminalReader>(history);
  return std::make_unique<PlainReader>();
}

LineEnd read_message(LineReader& reader, std::string& text) {
  LineEnd end = reader.read("> ", text);
  if (end != LineEnd::kLine || !text.starts_with(kFence)) return end;
  text.erase(0, kFence.size());
  while (!text.ends_with(kFence)) {
    std::string more;
    end = reader.read("... ", more);
    if (end == LineEnd::kInterrupted) return end;
    if (end == LineEnd::kEndOfInput) return text.empty() ? end : LineEnd::kLine;
    text.append(text.empty() ? "" : "\n").append(more);
  }
  text.resize(text.size() - kFence.size());
  if (text.ends_with('\n')) text.pop_back();
  return LineEnd::kLine;
}

}  // namespace outrider
