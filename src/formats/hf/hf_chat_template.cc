// SPDX-License-Identifier: Apache-2.0
#include "formats/hf/hf_chat_template.h"

#include <string_view>

#include "formats/json_file.h"
#include "formats/json_object.h"
#include "platform/mapped_file.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxTemplateBytes = 1 << 20;
constexpr std::string_view kJinjaFile = "chat_template.jinja";

// Entries are {"name": ..., "template": ...}.
Result<std::string> pick_default(const JsonObject& root, simdjson::dom::array templates) {
  for (const simdjson::dom::element entry : templates) {
    std::string_view name;
    std::string_view source;
    if (entry["name"].get(name) != simdjson::SUCCESS || entry["template"].get(source) != simdjson::SUCCESS) {
      return root.wrong_type("chat_template", "a string or a list of objects with name and template");
    }
    if (name == "default") return std::string(source);
  }
  return std::string();
}

}  // namespace

fs::path chat_template_path(const fs::path& directory) {
  std::error_code ignored;
  const fs::path jinja_path = directory / kJinjaFile;
  return fs::exists(jinja_path, ignored) ? jinja_path : directory / "tokenizer_config.json";
}

Result<std::string> read_chat_template(const fs::path& directory) {
  std::error_code ignored;
  const fs::path path = chat_template_path(directory);
  if (!fs::exists(path, ignored)) return std::string();
  if (path.filename() == kJinjaFile) {
    OUTRIDER_TRY(const MappedFile file, MappedFile::open(path));
    if (file.bytes().size() > kMaxTemplateBytes) {
      return input_error(path.string() + ": larger than the limit of 1 MiB");
    }
    return std::string(reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size());
  }
  OUTRIDER_TRY(const JsonFile document, JsonFile::read(path));
  const JsonObject& root = document.root();
  const auto element = root.find("chat_template");
  if (!element) return std::string();
  if (simdjson::dom::array templates; element->get(templates) == simdjson::SUCCESS) {
    return pick_default(root, templates);
  }
  OUTRIDER_TRY(const auto source, root.string("chat_template"));
  return std::string(*source);
}

}  // namespace outrider
