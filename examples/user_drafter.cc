// SPDX-License-Identifier: Apache-2.0
// A drafter from outside the library: it proposes that the text goes on as it did after the last occurrence
// of the pending token. The output stays the target's own, however bad the proposals. Usage: user_drafter
// MODEL PROMPT
#include <algorithm>
#include <cstdio>
#include <memory>
#include <utility>

#include "outrider/engine.h"

namespace {

class LastOccurrence final : public outrider::Drafter {
 public:
  const outrider::DrafterTraits& traits() const override { return traits_; }

  outrider::Status draft(std::span<const outrider::DraftRequest> requests,
                         std::span<outrider::TokenTree> trees) override {
    for (size_t i = 0; i < requests.size(); ++i) {
      const auto tokens = requests[i].tokens;
      const auto before = std::find(tokens.rbegin() + 1, tokens.rend(), tokens.back());
      int node = 0;
      for (auto next = before.base(); before != tokens.rend() && next != tokens.end(); ++next) {
        if (trees[i].depth(node) == requests[i].max_draft_len) break;
        node = trees[i].add(node, *next);
      }
    }
    return {};
  }

 private:
  outrider::DrafterTraits traits_{.name = "LastOccurrence"};
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "usage: user_drafter MODEL PROMPT\n"), 2;
  outrider::EngineOptions options;
  options.model = argv[1];
  options.speculation.decoding_type = outrider::Method::kUserProvided;
  options.user_drafter = std::make_shared<LastOccurrence>();
  const auto engine = outrider::Engine::open(std::move(options));
  if (!engine.ok()) return std::fprintf(stderr, "%s\n", engine.error().message.c_str()), 1;
  const auto done = (*engine)->generate({.prompt = (*engine)->tokenize(argv[2])});
  if (!done.ok()) return std::fprintf(stderr, "%s\n", done.error().message.c_str()), 1;
  std::printf("%s\n[%.2f tokens per pass]\n", done->text.c_str(), done->speculation.acceptance_length());
}
