// SPDX-License-Identifier: Apache-2.0
#include "drafters/registry.h"

#include <array>
#include <string>
#include <string_view>

#include "drafters/combined.h"
#include "drafters/draft_target.h"
#include "drafters/ngram.h"
#include "drafters/none.h"

namespace outrider {
namespace {

using Maker = Result<std::shared_ptr<Drafter>> (*)(const SpeculativeOptions&, const DrafterContext&);

Result<std::shared_ptr<Drafter>> use_user_drafter(const SpeculativeOptions&, const DrafterContext& context) {
  if (context.user_drafter == nullptr) {
    return usage_error("decoding_type UserProvided expects a drafter given through the C++ API, found none");
  }
  return context.user_drafter;
}

struct Entry {
  std::string_view name;
  Maker make;
};

constexpr std::array kDrafters = {
    Entry{"None", make_none_drafter},
    Entry{"NGram", make_ngram_drafter},
    Entry{"DraftTarget", make_draft_target_drafter},
    Entry{"SpecInfer", make_spec_infer_drafter},
    Entry{"Combined", make_combined_drafter},
    Entry{"UserProvided", use_user_drafter},
};

}  // namespace

SpeculativeOptions settled(SpeculativeOptions options) {
  if (options.decoding_type != "Auto") return options;
  options.decoding_type = "Combined";
  options.combine = {"NGram"};
  if (!options.speculative_model.empty()) options.combine.emplace_back("DraftTarget");
  return options;
}

Result<std::shared_ptr<Drafter>> make_drafter(const SpeculativeOptions& options,
                                              const DrafterContext& context) {
  if (options.max_draft_len < 1 || options.max_draft_len > 64) {
    return usage_error("max_draft_len must be 1 to 64, found " + std::to_string(options.max_draft_len));
  }
  std::string known;
  for (const Entry& entry : kDrafters) {
    if (entry.name == options.decoding_type) return entry.make(options, context);
    known += (known.empty() ? "" : ", ") + std::string(entry.name);
  }
  return usage_error("unknown decoding_type '" + options.decoding_type + "', expected one of " + known);
}

}  // namespace outrider
