// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>

#include "server/api/tool_calls/call_reader.h"

namespace outrider {

// Qwen3-Coder's: NAME>, then <parameter=KEY>, a text in lines of its own, </parameter>, and in the end
// </function>. A text is what the tool's schema says of its key: where that is not a string and the text is
// JSON of such a kind, that; else a string.
class TaggedCallReader final : public CallReader {
 public:
  explicit TaggedCallReader(SharedTools tools) : tools_(std::move(tools)) {}

  State push(char next) override;
  const std::optional<std::string>& name() const override { return name_; }
  std::string_view arguments() const override { return arguments_; }
  std::optional<std::string> finished_arguments() const override { return arguments_; }

 private:
  enum class Phase : uint8_t { kName, kBetween, kKey, kValue };

  State push_name();
  State push_between();
  State push_key();
  State push_value();
  void end_value();
  uint8_t kinds_of(const std::string& key) const;

  SharedTools tools_;
  Phase phase_ = Phase::kName;
  std::string held_;  // of the phase; of a value, what may be the beginning of its end
  std::optional<std::string> name_;
  std::string arguments_;
  std::set<std::string> keys_;
  uint8_t kinds_ = 0;      // of JSON that the value may be
  bool is_first_ = false;  // character of the value
  std::string value_;      // as far as it has come, where it may be no string
};

}  // namespace outrider
