// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/api/tool_calls/call_reader.h"
#include "server/api/tool_calls/json_object_text.h"

namespace outrider {

// Reads a call of the shape kNamed: a header with the name, the separator, and the arguments, with which the
// call ends. Around the name a header may have what families write there: "functions." and ":0" (Kimi K2),
// "[CALL_ID]" and an id (Mistral). After the header "function" the name is a line and the arguments may stand
// in a fence (DeepSeek).
class NamedCallReader final : public CallReader {
 public:
  explicit NamedCallReader(const CallForm& form)
      : separator_(form.separator), may_skip_separator_(form.may_skip_separator) {}

  ReadState push(char next) override;
  const std::optional<std::string>& name() const override { return name_; }
  std::string_view arguments() const override { return arguments_.text(); }
  std::string ending() const override { return arguments_.ending(); }
  std::string held() const override { return arguments_.held(); }

 private:
  enum class Phase : uint8_t { kHeader, kName, kFence, kArguments };

  ReadState push_header();
  ReadState push_name();
  ReadState push_fence();
  ReadState push_argument(char next);

  std::string_view separator_;
  bool may_skip_separator_;
  Phase phase_ = Phase::kHeader;
  std::string held_;  // text of the phase so far; unused in kArguments
  std::optional<std::string> name_;
  JsonObjectText arguments_;
};

}  // namespace outrider
