// SPDX-License-Identifier: Apache-2.0
#include "drafters/none.h"

#include "config/methods.h"

namespace outrider {
namespace {

class NoneDrafter final : public Drafter {
 public:
  const DrafterTraits& traits() const override { return traits_; }
  Status draft(std::span<const DraftRequest>, std::span<TokenTree>) override { return {}; }

 private:
  DrafterTraits traits_{.name = std::string(method_name(Method::kNone))};
};

}  // namespace

Result<std::shared_ptr<Drafter>> make_none_drafter(const SpeculativeOptions&, const DrafterContext&) {
  return std::shared_ptr<Drafter>(std::make_shared<NoneDrafter>());
}

}  // namespace outrider
