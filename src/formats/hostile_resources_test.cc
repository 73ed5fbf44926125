// SPDX-License-Identifier: Apache-2.0
// For a large hostile file, resident memory may grow by twice the file plus 64 MiB, and one second must
// suffice.
#include <gtest/gtest.h>

#include <ctime>
#include <fstream>
#include <functional>
#include <string>

#include "base/quote.h"
#include "base/sanitized.h"
#include "formats/gguf/gguf_tokenizer.h"
#include "formats/gguf/test_gguf.h"
#include "formats/hf/hf_config.h"
#include "formats/hf/safetensors.h"
#include "formats/test_outcome.h"
#include "formats/torch/state_dict.h"
#include "formats/torch/test_torch.h"

namespace outrider {
namespace {

using namespace testing_gguf;  // NOLINT: helpers of this test

constexpr size_t kMiB = 1 << 20;

size_t status_bytes(const std::string& field) {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    if (word != field + ":") continue;
    size_t kilobytes = 0;
    status >> kilobytes;
    return kilobytes * 1024;
  }
  return 0;
}

void expect_frugal(const std::string& name, const std::string& bytes, const std::function<void()>& parse) {
  SCOPED_TRACE(name);
  std::ofstream("/proc/self/clear_refs") << "5";  // restarts the peak from the current use
  const size_t before = status_bytes("VmRSS");
  const std::clock_t start = std::clock();  // processor time, because other programs may be busy
  parse();
  const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  if (kIsSanitized) return;  // its memory and time hide the program's own use
  const size_t peak = status_bytes("VmHWM");
  EXPECT_LE(peak > before ? peak - before : 0, 2 * bytes.size() + 64 * kMiB);
  EXPECT_LT(seconds, 1.0);
}

std::string repeated(std::string_view unit, size_t bytes) {
  std::string text;
  while (text.size() < bytes) text += unit;
  return text;
}

TEST(HostileResourcesTest, Gguf) {
  File tokens = tiny_model();
  const std::string token = raw(uint64_t{1}) + "x";
  tokens.key("tokenizer.ggml.tokens") = array(kString, 8 * kMiB / token.size(), "");
  tokens.key("tokenizer.ggml.tokens").payload += repeated(token, 8 * kMiB - token.size());
  File merges = tiny_model();
  merges.key("tokenizer.ggml.model") = text("gpt2");
  const std::string merge = raw(uint64_t{3}) + "a b";
  merges.key("tokenizer.ggml.merges") = array(kString, 8 * kMiB / merge.size(), "");
  merges.key("tokenizer.ggml.merges").payload += repeated(merge, 8 * kMiB - merge.size());
  File tensors = tiny_model();
  for (int i = 0; i < 60000; ++i) tensors.tensors.push_back({std::to_string(i), {1, 1, 1, 1}, 0, 4, {}, {}});
  for (const File& file : {tokens, merges, tensors}) {
    const std::string bytes = file.serialize().bytes;
    expect_frugal("GGUF", bytes, [&] {
      const auto parsed = parse_gguf(std::as_bytes(std::span(bytes)), "x.gguf");
      ASSERT_TRUE(parsed.ok()) << parsed.error().message;
      expect_refused_or_valid(gguf_tokenizer_spec(*parsed, "x.gguf"));
    });
  }
}

TEST(HostileResourcesTest, Safetensors) {
  for (const std::string_view unit : {"[", "[,", "0,", "\"\":", "{\"a\":", "\\\""}) {
    std::string header = repeated(unit, 8 * kMiB);
    header.replace(0, 1, "{");
    const std::string bytes = raw(static_cast<uint64_t>(header.size())) + header;
    expect_frugal("safetensors of " + std::string(unit), bytes, [&] {
      expect_refused(parse_safetensors(std::as_bytes(std::span(bytes)), "x"), "header is not valid");
    });
  }
}

TEST(HostileResourcesTest, Pickle) {
  for (const std::string_view unit :
       {"]", "(", "N", ")\x85", "N\x85", "h\x01", "}]]s", "((tt", "K\x01q\x02"}) {
    const std::string bytes = kPickleStart + ")q\x01" + repeated(unit, 8 * kMiB) + ".";
    expect_frugal("pickle of " + quote(unit), bytes,
                  [&] { EXPECT_FALSE(read_state_dict(bytes_of(bytes), "x").ok()); });
  }
}

TEST(HostileResourcesTest, Config) {
  for (const std::string_view unit : {"0,", "[],", "{},", "\"\",", "1e400,", "99999999999999999999,"}) {
    const std::string text = "{\"a\":[" + repeated(unit, 4 * kMiB - 100) + "0]}";
    expect_frugal("JSON of " + std::string(unit), text,
                  [&] { expect_refused(parse_hf_config(text), "architecture"); });
  }
}

}  // namespace
}  // namespace outrider
