// SPDX-License-Identifier: Apache-2.0
// Templates of any bytes must render or be refused within the limits.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "chat_template/jinja/interpreter.h"
#include "chat_template/jinja/json.h"
#include "chat_template/jinja/parser.h"

namespace {

constexpr std::string_view kVariables = R"({
  "messages": [{"role": "system", "content": " Be brief. "}, {"role": "user", "content": "Grüße\n<think>x</think>"}],
  "tools": [{"function": {"name": "now", "parameters": {"type": "object", "n": [1, 2.5, null, true]}}}],
  "bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": true})";

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace outrider;
  static const jinja::Value variables = jinja::parse_json(kVariables).value();
  const auto body = jinja::parse_template({reinterpret_cast<const char*>(data), size});
  if (!body.ok()) return 0;
  jinja::Limits limits;
  limits.steps = 100'000;
  limits.allocation = limits.max_value_bytes = limits.output = size_t{1} << 20;
  const auto rendered = jinja::render(*body, variables.dict(), limits, std::tm{.tm_mday = 1});
  if (rendered.ok() && rendered->size() > limits.output) std::abort();
  if (!rendered.ok() && rendered.error().message.find('\n') != std::string::npos) std::abort();
  return 0;
}
