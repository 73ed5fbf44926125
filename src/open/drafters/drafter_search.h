// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "draft_heads/head_file.h"
#include "drafters/draft_files.h"
#include "formats/model_file.h"
#include "outrider/result.h"
#include "outrider/speculative_options.h"

namespace outrider {

// Why a drafter is taken for the target's, the best reason first.
enum class Evidence : uint8_t {
  kFingerprint,  // its configuration has the target's fingerprint, which all quantisations share
  kInside,       // the target's own files have it
  kName,         // it says by name that it was made for the target, or is known to be
  kShapes,       // it lies beside the target, names none and fits by its shapes
  kDraftName,    // a draft model that names the target
  kSeries,       // a smaller model of the target's series
  kVocabulary,   // a smaller model with the target's vocabulary
};

// A draft model or learned drafter that fits a target.
struct FoundDrafter {
  std::filesystem::path path;
  Method method = {};  // the method that drafts with it
  std::string name;    // as in DrafterCandidate
  std::string place;
  Evidence evidence = {};
  double agreement = 0.0;               // of a head, as its files say (HeadSummary)
  std::optional<HeadFile> head = {};    // opened, where it is a head
  std::optional<ModelFile> model = {};  // opened, where it is a model

  DraftFiles take_files();  // moves them out
};

// A model or a learned drafter that does not fit the target, or that failed when it was tried.
struct LeftOutDrafter {
  std::filesystem::path path;
  std::string reason;
  std::string name = {};
  std::string place = {};
};

struct DrafterSearch {
  std::vector<FoundDrafter> found;  // the best first
  std::vector<LeftOutDrafter> left_out, tried;
  int64_t others = 0;      // models that are neither heads nor small enough to draft
  int64_t uncompared = 0;  // small models with vocabularies that were not compared: enough was found
};

// How far a search goes.
struct SearchDepth {
  // A draft model with more than this share of the target's bytes takes too long for what it drafts.
  int64_t target_over_draft = 5;
  size_t models = 1;         // draft models to find
  bool after_heads = false;  // draft models are looked for where a head was found, too
};

// The drafters that Auto can use, of all places (drafter_places.h) and in the target's own files. Only
// headers are read, and the tokenizers of a few draft models.
DrafterSearch find_drafters(const ModelFile& target, const SearchDepth& depth = {});

// Searches only these folders, and finds every draft model that is smaller than the target. Error: no such
// folder.
Result<DrafterSearch> search_drafters(const std::vector<std::filesystem::path>& folders,
                                      const ModelFile& target);

// The best learned drafter for that method, wherever it lies.
std::optional<FoundDrafter> find_trained_head(const ModelFile& target, Method method);

// "trained for this target", "a smaller model with its vocabulary"
std::string_view evidence_text(Evidence evidence);

}  // namespace outrider
