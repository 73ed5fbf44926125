// SPDX-License-Identifier: Apache-2.0
// Folders as the Hub, caches and users have them, with tiny models and heads of fake weights.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "draft_heads/fake_head.h"
#include "formats/gguf/test_gguf.h"

namespace outrider {

// A home of a test's own, which is removed with this object. Paths are relative to it.
class HubFolders {
 public:
  HubFolders();
  ~HubFolders();
  HubFolders(const HubFolders&) = delete;
  HubFolders& operator=(const HubFolders&) = delete;

  std::filesystem::path at(const std::string& path) const { return root_ / path; }

  // A model of tests/data/models or models/, with members of config.json replaced.
  void model(const std::string& name, const std::string& to, const nlohmann::json& config = {}) const;
  // outrider-small with another norm, for which nobody has trained a head.
  void unknown_model(const std::string& to) const;
  // The model as a GGUF file with these strings among its keys.
  void gguf(const std::string& model, const std::string& to,
            const std::map<std::string, std::string>& keys = {}) const;
  void head(const FakeHead& made, const std::string& to, const nlohmann::json& config = {}) const;
  // The head's tensors among the tensors of the model in `to`.
  void head_inside(const FakeHead& made, const std::string& to) const;
  // The module of a GGUF file of tests/data/heads, in a file without or with the tensors of its model.
  void module(const std::string& model, const std::string& to, const std::string& name) const;
  void module_inside(const std::string& model, const std::string& to) const;
  // An EAGLE-3 head for tests/data/models/llama in llama.cpp's layout that names its target.
  void eagle_gguf(const std::string& to, const std::string& base_model) const;
  // The blob and the manifest of Ollama.
  void ollama(const std::string& model, const std::string& name, const std::string& general_name) const;
  void text(const std::string& to, const std::string& contents) const;

  // ".../models--ORG--REPO/snapshots/COMMIT" of the Hub's cache.
  static std::string snapshot(const std::string& organisation, const std::string& repository);

 private:
  std::filesystem::path made(const std::string& to) const;

  std::filesystem::path root_;
};

}  // namespace outrider
