// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "outrider/result.h"

namespace outrider {

class JsonObject;

// A configuration file in JSON whose root is an object. Limits: its size, 64 levels, no duplicate keys, valid
// UTF-8. Copies share the document. Readers of its members include formats/json_object.h, and with it the
// JSON library.
class JsonFile {
 public:
  static constexpr size_t kMaxBytes = 4 << 20;  // of a configuration

  // `name` begins every message.
  static Result<JsonFile> parse(std::string_view text, std::string name, size_t max_bytes = kMaxBytes);
  static Result<JsonFile> read(const std::filesystem::path& path, size_t max_bytes = kMaxBytes);

  const JsonObject& root() const;

 private:
  struct Parsed;
  explicit JsonFile(std::shared_ptr<const Parsed> parsed) : parsed_(std::move(parsed)) {}

  std::shared_ptr<const Parsed> parsed_;
};

}  // namespace outrider
