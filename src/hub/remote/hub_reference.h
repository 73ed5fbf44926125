// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "outrider/result.h"

namespace outrider {

// A model on the Hub: "hf:ORG/REPO", or "hf:ORG/REPO:WANTED" with the name of a file or of a quant in it.
struct HubReference {
  std::string repository;  // "ORG/REPO"
  std::string wanted;      // empty: the best for this machine

  std::string text() const;  // "hf:ORG/REPO:WANTED"
};

// A short name for a model on the Hub.
struct KnownModel {
  std::string_view name;
  std::string_view repository;
  std::string_view wanted;
  std::string_view usual;  // the file or quant that most people take
  int64_t bytes;           // of that, about
};
std::span<const KnownModel> known_models();

// The model that commands use where none is named.
const KnownModel& default_known_model();

// Reads a reference, with or without "hf:" or "hf.co/", a known name, or the address of a repository or of
// one of its files as a browser shows it. Errors: neither, with all known names; a branch other than main.
Result<HubReference> parse_hub_reference(std::string_view text);

}  // namespace outrider
