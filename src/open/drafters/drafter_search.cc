// SPDX-License-Identifier: Apache-2.0
#include "open/drafters/drafter_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>

#include "config/methods.h"
#include "draft_heads/head_fit.h"
#include "drafters/draft_target/vocabulary_match.h"
#include "formats/random_model.h"
#include "open/drafters/drafter_places.h"
#include "open/drafters/model_identity.h"
#include "open/drafters/normal_name.h"
#include "tokenizer/tokenizer.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxTokenizers = 24;  // of draft models that one search opens

// A model that may draft, before its tokenizer is compared.
struct SmallModel {
  DrafterCandidate candidate;
  std::shared_ptr<const StoredFiles> files;  // null: they cannot be opened
  Evidence evidence = {};
};

class Search {
 public:
  Search(const ModelFile& target, const SearchDepth& depth)
      : target_(target),
        depth_(depth),
        identity_(identity_of(target, repository_of(target.path))),
        bytes_(weight_bytes(target.path)) {}

  void look_inside() {
    if (identity_.modules == 0) return;
    auto head = find_module(target_);
    if (head.ok() && *head) return add_head(candidate_inside(), std::move(**head), Evidence::kInside);
    leave_out(candidate_inside(), "the configuration names a module that the files do not have");
  }

  void look_at(const std::vector<DrafterCandidate>& candidates) {
    for (const DrafterCandidate& candidate : candidates) {
      auto found = open_head_or_files(candidate.path);
      if (!found.ok()) {
        leave_out(candidate, found.error().message);
      } else if (found->head) {
        judge_head(candidate, std::move(*found->head));
      } else {
        judge_model(candidate, std::move(found->files));
      }
    }
  }

  DrafterSearch finish() {
    const auto rank = [](const FoundDrafter& drafter) {
      return std::make_tuple(drafter.evidence, -drafter.agreement);
    };
    std::ranges::stable_sort(search_.found, {}, rank);
    compare_small_models();
    return std::move(search_);
  }

 private:
  DrafterCandidate candidate_inside() const {
    return {.path = target_.path,
            .name = target_.path.filename().string(),
            .place = "inside the target",
            .is_beside = true,
            .bytes = 0};
  }

  void leave_out(const DrafterCandidate& candidate, std::string reason) {
    search_.left_out.push_back({candidate.path, std::move(reason), candidate.name, candidate.place});
  }

  void add_head(const DrafterCandidate& candidate, HeadFile head, Evidence evidence) {
    FoundDrafter found{.path = candidate.path,
                       .method = head.method,
                       .name = candidate.name,
                       .place = candidate.place,
                       .evidence = evidence,
                       .agreement = summarize_head(head).agreement};
    found.head = std::move(head);
    search_.found.push_back(std::move(found));
  }

  void judge_head(const DrafterCandidate& candidate, HeadFile head) {
    if (fingerprint_.empty()) fingerprint_ = target_fingerprint(target_);
    const HeadSummary summary = summarize_head(head);
    const auto reasons = misfits(summary, target_.config, fingerprint_);
    if (!reasons.empty()) return leave_out(candidate, fmt::format("{}", fmt::join(reasons, "; ")));
    if (!summary.target.empty()) return add_head(candidate, std::move(head), Evidence::kFingerprint);
    const ModelIdentity identity = identity_of(head, repository_name(candidate));
    if (is_made_for(identity, identity_)) return add_head(candidate, std::move(head), Evidence::kName);
    if (!identity.made_for.empty())
      return leave_out(candidate, fmt::format("made for {}", fmt::join(identity.made_for, " or ")));
    if (is_part_of_another(identity))
      return leave_out(candidate, fmt::format("a module of {}", identity.stated_name));
    if (candidate.is_beside) return add_head(candidate, std::move(head), Evidence::kShapes);
    leave_out(candidate, "fits by its shapes, but names no target; name it with --speculative-model");
  }

  // A module has the name of the model that it was taken from.
  bool is_part_of_another(const ModelIdentity& head) const {
    return head.modules > 0 && !head.stated_name.empty() && !identity_.stated_name.empty() &&
           head.stated_name != identity_.stated_name;
  }

  std::string repository_name(const DrafterCandidate& candidate) const {
    return candidate.is_beside ? repository_of(candidate.path) : candidate.name;
  }

  void judge_model(const DrafterCandidate& candidate, std::shared_ptr<const StoredFiles> files) {
    if (!candidate.may_be_model || candidate.bytes == 0 ||
        candidate.bytes * depth_.target_over_draft > bytes_ || candidate.bytes == bytes_) {
      ++search_.others;
      return;
    }
    const auto identity = read_identity(candidate.path, files.get(), repository_name(candidate));
    if (!identity.ok()) return leave_out(candidate, identity.error().message);
    if (!identity->writes_text) return leave_out(candidate, "makes vectors or scores, no text");
    if (is_other_vocabulary(identity->vocab_size)) {
      return leave_out(candidate, fmt::format("has a vocabulary of {} tokens, the target's has {}",
                                              identity->vocab_size, identity_.vocab_size));
    }
    small_.push_back({candidate, std::move(files), model_evidence(*identity)});
  }

  // Output heads are padded, and fine-tunes add tokens at the end.
  bool is_other_vocabulary(int64_t size) const {
    const auto [less, more] = std::minmax(size, identity_.vocab_size);
    return size > 0 && more - less > more / 8;
  }

  Evidence model_evidence(const ModelIdentity& identity) const {
    if (is_made_for(identity, identity_)) return Evidence::kDraftName;
    const auto has_series = [&](const std::string& name) {
      const std::string series = series_of(name);
      const auto is_same = [&](const std::string& own) { return series_of(own) == series; };
      return !series.empty() && std::ranges::any_of(identity_.names, is_same);
    };
    return std::ranges::any_of(identity.names, has_series) ? Evidence::kSeries : Evidence::kVocabulary;
  }

  void compare_small_models() {
    const auto rank = [](const SmallModel& model) {
      return std::make_tuple(model.evidence, model.candidate.bytes);
    };
    std::ranges::stable_sort(small_, {}, rank);
    size_t wanted = search_.found.empty() || depth_.after_heads ? depth_.models : 0;
    size_t opened = 0;
    for (const SmallModel& model : small_) {
      if (wanted == 0 || opened == kMaxTokenizers) {
        ++search_.uncompared;
        continue;
      }
      ++opened;
      if (compare(model)) --wanted;
    }
  }

  // True: it is a draft model for the target.
  bool compare(const SmallModel& small) {
    auto model = small.files ? open_model(small.files) : open_model(small.candidate.path);
    if (!model.ok()) return leave_out(small.candidate, model.error().message), false;
    if (std::string reason = why_no_draft(*model); !reason.empty())
      return leave_out(small.candidate, std::move(reason)), false;
    FoundDrafter found{.path = small.candidate.path,
                       .method = draft_model_method(&*model),
                       .name = small.candidate.name,
                       .place = small.candidate.place,
                       .evidence = small.evidence,
                       .agreement = 0.0};
    found.model = std::move(model).value();
    search_.found.push_back(std::move(found));
    return true;
  }

  // Empty: it has the target's vocabulary.
  std::string why_no_draft(const ModelFile& file) {
    if (vocabulary_ == nullptr) {
      auto own = Tokenizer::create(target_.tokenizer);
      if (!own.ok()) return own.error().message;
      vocabulary_ = std::move(own).value();
    }
    const auto drafts = Tokenizer::create(file.tokenizer);
    if (!drafts.ok()) return drafts.error().message;
    const Status same = check_same_vocabulary(*vocabulary_, **drafts);
    return same.ok() ? "" : same.error().message;
  }

  const ModelFile& target_;
  SearchDepth depth_;
  ModelIdentity identity_;
  int64_t bytes_;            // of the target's weights
  std::string fingerprint_;  // of the target, where a head asked for it
  std::shared_ptr<const Tokenizer> vocabulary_;
  std::vector<SmallModel> small_;
  DrafterSearch search_;
};

}  // namespace

DraftFiles FoundDrafter::take_files() {
  DraftFiles files;
  files.head = std::exchange(head, std::nullopt);
  if (model) files.models.push_back(*std::exchange(model, std::nullopt));
  return files;
}

std::string_view evidence_text(Evidence evidence) {
  constexpr std::array<std::string_view, 7> kTexts = {
      "trained for this target",
      "a module of the target",
      "made for this target by its name",
      "beside the target, with its shapes",
      "a draft model made for this target",
      "a smaller model of its series",
      "a smaller model with its vocabulary",
  };
  return kTexts[static_cast<size_t>(evidence)];
}

DrafterSearch find_drafters(const ModelFile& target, const SearchDepth& depth) {
  if (is_shape_path(target.path)) return {};
  Search search(target, depth);
  search.look_inside();
  search.look_at(drafter_candidates(target));
  return search.finish();
}

Result<DrafterSearch> search_drafters(const std::vector<fs::path>& folders, const ModelFile& target) {
  OUTRIDER_TRY(const auto candidates, candidates_in(folders, target));
  Search search(target, {.target_over_draft = 1, .models = candidates.size(), .after_heads = true});
  search.look_at(candidates);
  return search.finish();
}

std::optional<FoundDrafter> find_trained_head(const ModelFile& target, Method method) {
  if (auto own = find_module(target); own.ok() && *own && stands_for(method, (*own)->method)) {
    FoundDrafter found{.path = target.path,
                       .method = (*own)->method,
                       .name = target.path.filename().string(),
                       .place = "inside the target",
                       .evidence = Evidence::kInside,
                       .agreement = 0.0};
    found.head = std::move(**own);
    return found;
  }
  DrafterSearch search = find_drafters(target, {.models = 0});
  const auto wanted = std::ranges::find(search.found, method, &FoundDrafter::method);
  if (wanted == search.found.end()) return std::nullopt;
  return std::move(*wanted);
}

}  // namespace outrider
