// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include "capi/handles.h"
#include "capi/status.h"

using outrider::Status;
using outrider::status_of;
using outrider::TokenId;

namespace {

// An array or text for outrider_free(), which ends with a zero.
template <typename T>
Status give(std::span<const T> values, T** memory, size_t* count) {
  auto* copy = static_cast<T*>(std::calloc(values.size() + 1, sizeof(T)));
  if (copy == nullptr) throw std::bad_alloc();
  if (!values.empty()) std::memcpy(copy, values.data(), values.size_bytes());
  *memory = copy;
  *count = values.size();
  return {};
}

Status give_text(const std::string& text, char** memory, size_t* size) {
  return give(std::span<const char>(text), memory, size);
}

}  // namespace

outrider_options* outrider_options_new(void) {
  return outrider::made_by([] { return new outrider_options; });
}

void outrider_options_free(outrider_options* options) { delete options; }

outrider_status outrider_options_add(outrider_options* options, const char* name, const char* value) {
  return status_of([&] {
    options->values.push_back({name, value});
    return Status();
  });
}

outrider_status outrider_engine_open(const outrider_options* options, outrider_engine** engine) {
  return status_of([&]() -> Status {
    const outrider_options defaults;
    const outrider_options& chosen = options == nullptr ? defaults : *options;
    OUTRIDER_TRY(outrider::OpenedEngine opened, open_with_options(chosen.values, chosen.drafter));
    *engine = new outrider_engine{std::move(opened)};
    return {};
  });
}

void outrider_engine_close(outrider_engine* engine) { delete engine; }

const char* outrider_engine_warning(const outrider_engine* engine, size_t index) {
  const auto& warnings = engine->opened.warnings;
  return index < warnings.size() ? warnings[index].c_str() : nullptr;
}

const char* outrider_engine_model(const outrider_engine* engine) {
  return engine->engine().info().model_path.c_str();
}

const char* outrider_engine_drafter(const outrider_engine* engine) {
  return engine->engine().info().drafter.c_str();
}

const char* outrider_engine_device(const outrider_engine* engine) {
  return engine->engine().info().device.c_str();
}

const char* outrider_engine_kernels(const outrider_engine* engine) {
  return engine->engine().info().kernels.c_str();
}

int64_t outrider_engine_vocab_size(const outrider_engine* engine) {
  return engine->engine().info().vocab_size;
}

int64_t outrider_engine_context(const outrider_engine* engine) { return engine->engine().info().context; }

outrider_status outrider_tokenize(const outrider_engine* engine, const char* text, size_t size,
                                  bool add_special, bool parse_special, int32_t** tokens, size_t* count) {
  return status_of([&] {
    const auto ids = engine->engine().tokenize({text, size}, add_special, parse_special);
    return give(std::span<const TokenId>(ids), tokens, count);
  });
}

outrider_status outrider_detokenize(const outrider_engine* engine, const int32_t* tokens, size_t count,
                                    bool skip_special, char** text, size_t* size) {
  return status_of([&]() -> Status {
    const int64_t vocabulary = outrider_engine_vocab_size(engine);
    for (const TokenId token : std::span(tokens, count)) {
      if (token < 0 || token >= vocabulary) {
        return outrider::usage_error("expected token ids from 0 to " + std::to_string(vocabulary - 1) +
                                     ", found " + std::to_string(token));
      }
    }
    return give_text(engine->engine().detokenize({tokens, count}, skip_special), text, size);
  });
}

outrider_status outrider_apply_chat_template(const outrider_engine* engine, const outrider_message* messages,
                                             size_t count, bool add_generation_prompt, char** text,
                                             size_t* size) {
  return status_of([&]() -> Status {
    std::vector<std::pair<std::string, std::string>> pairs;
    for (const outrider_message& message : std::span(messages, count))
      pairs.emplace_back(message.role, message.content);
    OUTRIDER_TRY(const std::string prompt,
                 engine->engine().apply_chat_template(pairs, add_generation_prompt));
    return give_text(prompt, text, size);
  });
}
