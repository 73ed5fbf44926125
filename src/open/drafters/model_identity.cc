// SPDX-License-Identifier: Apache-2.0
#include "open/drafters/model_identity.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <optional>
#include <utility>

#include "config/message_text.h"
#include "config/methods.h"
#include "formats/gguf/gguf.h"
#include "formats/json_file.h"
#include "formats/json_object.h"
#include "formats/stored_files.h"
#include "open/drafters/known_heads.h"
#include "open/drafters/normal_name.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

// Names of methods, and words that stand beside them in names of drafters.
bool is_drafter_word(const std::string& word) {
  constexpr std::array<std::string_view, 8> kWords = {"speculator", "speculators", "draft", "drafter",
                                                      "head",       "module",      "b16",   "nextn"};
  if (std::ranges::find(kWords, word) != kWords.end()) return true;
  const auto method = find_method(word);
  return method && method_row(*method).needs != MethodNeeds::kMethods;
}

std::string without_drafter_words(const std::string& normal) {
  std::vector<std::string> words = words_of_name(normal);
  const size_t count = words.size();
  std::erase_if(words, is_drafter_word);
  return words.size() == count ? std::string() : joined_words(words);
}

void add_name(std::vector<std::string>& names, std::string_view name) {
  std::string normal = normal_name(name);
  if (!normal.empty() && std::ranges::find(names, normal) == names.end()) names.push_back(std::move(normal));
}

// The last part of a path says nothing where programs choose it: a commit, a digest.
bool is_given_name(std::string_view name) {
  const auto is_hex = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  return !name.starts_with("sha256-") && !(name.size() >= 40 && std::ranges::all_of(name, is_hex));
}

void add_path_names(const fs::path& path, std::string_view repository, ModelIdentity& identity) {
  add_name(identity.names, repository.substr(0, repository.find(':')));
  const std::string last =
      path.filename().empty() ? path.parent_path().filename().string() : path.filename().string();
  if (is_given_name(last)) add_name(identity.names, last);
  if (const std::string_view target = known_target_of(repository); !target.empty())
    add_name(identity.made_for, target);
}

// "_name_or_path" is where the files were read from: a name only where it has the form of one.
bool is_repository_name(std::string_view text) {
  return !text.starts_with('/') && !text.starts_with('.') && std::ranges::count(text, '/') == 1;
}

std::string text_at(const JsonObject& object, const char* key) {
  const auto text = object.string(key);
  return text.ok() && *text ? std::string(**text) : std::string();
}

int64_t number_at(const JsonObject& object, const char* key) {
  for (const char* part : {"", "text_config", "llm_config"}) {
    auto inner = *part == '\0' ? Result<std::optional<JsonObject>>(object) : object.object(part);
    if (!inner.ok() || !*inner) continue;
    const auto number = (*inner)->integer(key);
    if (number.ok() && number->value_or(0) > 0) return **number;
  }
  return 0;
}

// The names of targets that a configuration has: of speculators, and of adapters, which is the same key.
void add_verifier(const JsonObject& config, ModelIdentity& identity) {
  const auto speculators = config.object("speculators_config");
  if (speculators.ok() && *speculators) {
    const auto verifier = (*speculators)->object("verifier");
    if (verifier.ok() && *verifier) add_name(identity.made_for, text_at(**verifier, "name_or_path"));
  }
  for (const char* key : {"base_model_name_or_path", "target_model_name_or_path", "verifier_name_or_path"})
    add_name(identity.made_for, text_at(config, key));
}

bool writes_text(const JsonObject& config) {
  const auto architectures = config.array("architectures");
  if (!architectures.ok() || !*architectures) return true;
  for (const simdjson::dom::element name : **architectures) {
    std::string_view text;
    if (name.get(text) == simdjson::SUCCESS && !text.ends_with("ForCausalLM") &&
        !text.ends_with("ForConditionalGeneration") && !text.ends_with("LMHeadModel"))
      return false;
  }
  return true;
}

void add_config(const JsonObject& config, ModelIdentity& identity) {
  if (const std::string name = text_at(config, "_name_or_path"); is_repository_name(name))
    add_name(identity.names, name);
  add_verifier(config, identity);
  identity.vocab_size = number_at(config, "vocab_size");
  identity.modules =
      std::max(number_at(config, "num_nextn_predict_layers"), number_at(config, "mtp_num_hidden_layers"));
  identity.writes_text = writes_text(config);
}

// The models that the card beside the files names as its base, one or a list: "base_model: ORG/NAME".
void add_card(const fs::path& folder, std::vector<std::string>& made_for) {
  constexpr int kMaxLines = 60;
  const fs::path path = folder / "README.md";
  std::error_code code;
  if (!fs::is_regular_file(path, code)) return;
  std::ifstream card(path);
  std::string line;
  if (!std::getline(card, line) || !line.starts_with("---")) return;
  bool is_list = false;
  for (int i = 0; i < kMaxLines && std::getline(card, line) && !line.starts_with("---"); ++i) {
    const std::string_view text(line);
    const size_t begin = text.find_first_not_of(" -\t");
    if (text.starts_with("base_model:")) {
      is_list = true;
      add_name(made_for, text.substr(std::string_view("base_model:").size()));
    } else if (is_list && begin != 0 && begin != std::string_view::npos) {
      add_name(made_for, text.substr(begin));
    } else {
      is_list = false;
    }
  }
}

std::string text_at(const GgufFile& file, const std::string& key) {
  const GgufValue* value = file.find(key);
  const auto text = value == nullptr ? std::nullopt : value->string();
  return text ? std::string(*text) : std::string();
}

int64_t number_at(const GgufFile& file, const std::string& key) {
  const GgufValue* value = file.find(key);
  const auto number = value == nullptr ? std::nullopt : value->integer();
  return number.value_or(0);
}

// "general.basename" with its size and its kind of training.
std::string whole_name(const std::string& base, const std::string& size, const std::string& finetune) {
  std::string name = base;
  for (const std::string& part : {size, finetune}) {
    if (!base.empty() && !part.empty()) name += "-" + part;
  }
  return name;
}

void add_gguf_keys(const GgufFile& file, ModelIdentity& identity) {
  identity.stated_name = normal_name(text_at(file, "general.name"));
  add_name(identity.names, identity.stated_name);
  add_name(identity.names, whole_name(text_at(file, "general.basename"), text_at(file, "general.size_label"),
                                      text_at(file, "general.finetune")));
  const int64_t bases = std::min<int64_t>(number_at(file, "general.base_model.count"), 8);
  for (int64_t i = 0; i < bases; ++i) {
    const std::string prefix = fmt::format("general.base_model.{}.", i);
    const std::string url = text_at(file, prefix + "repo_url");
    add_name(identity.made_for, url.empty() ? text_at(file, prefix + "name") : url);
  }
  const std::string architecture = text_at(file, "general.architecture");
  identity.modules = number_at(file, architecture + ".nextn_predict_layers");
  identity.writes_text = number_at(file, architecture + ".pooling_type") == 0;
  if (const GgufValue* tokens = file.find("tokenizer.ggml.tokens"); tokens != nullptr && tokens->is_array())
    identity.vocab_size = static_cast<int64_t>(tokens->count());
}

// Names of drafters have the target's, and a word for what they are.
void take_own_name(ModelIdentity& identity) {
  const std::vector<std::string> names = identity.names;
  for (const std::string& name : names) add_name(identity.names, without_drafter_words(name));
}

}  // namespace

ModelIdentity identity_of(const ModelFile& model, std::string_view repository) {
  ModelIdentity identity;
  add_path_names(model.path, repository, identity);
  if (model.document) {
    add_config(model.document->root(), identity);
  } else if (model.stored && model.stored->gguf() != nullptr) {
    add_gguf_keys(*model.stored->gguf(), identity);
  }
  identity.vocab_size = std::ssize(model.tokenizer.pieces);
  return identity;
}

ModelIdentity identity_of(const HeadFile& head, std::string_view repository) {
  ModelIdentity identity;
  add_path_names(head.file.path, repository, identity);
  if (const GgufFile* file = head.file.stored->gguf()) {
    add_gguf_keys(*file, identity);
  } else {
    add_config(head.config.root(), identity);
    if (identity.made_for.empty()) add_card(head.file.path, identity.made_for);
  }
  take_own_name(identity);
  return identity;
}

Result<ModelIdentity> read_identity(const fs::path& path, const StoredFiles* files,
                                    std::string_view repository) {
  ModelIdentity identity;
  add_path_names(path, repository, identity);
  if (files != nullptr && files->gguf() != nullptr) {
    add_gguf_keys(*files->gguf(), identity);
    return identity;
  }
  OUTRIDER_TRY(const JsonFile config, JsonFile::read(path / "config.json"));
  add_config(config.root(), identity);
  return identity;
}

std::string repository_of(const fs::path& path) {
  constexpr std::string_view kPrefix = "models--";
  for (const fs::path& part : path) {
    std::string name = part.string();
    if (!name.starts_with(kPrefix)) continue;
    name.erase(0, kPrefix.size());
    if (const size_t dashes = name.find("--"); dashes != std::string::npos) name.replace(dashes, 2, "/");
    return name;
  }
  return {};
}

bool is_made_for(const ModelIdentity& drafter, const ModelIdentity& target) {
  const auto is_targets = [&](const std::string& name) {
    const auto is_own = [&](const std::string& own) { return is_same_name(own, name); };
    return std::ranges::any_of(target.names, is_own);
  };
  return std::ranges::any_of(drafter.made_for, is_targets) ||
         (drafter.made_for.empty() && std::ranges::any_of(drafter.names, is_targets));
}

}  // namespace outrider
