// SPDX-License-Identifier: Apache-2.0
#include "server/api/tool_calls/call_reader.h"

#include "server/api/tool_calls/call_object_reader.h"
#include "server/api/tool_calls/fenced_call_reader.h"
#include "server/api/tool_calls/tagged_call_reader.h"

namespace outrider {

std::unique_ptr<CallReader> make_call_reader(CallForm form, const SharedTools& tools) {
  switch (form) {
    case CallForm::kObject:
      break;
    case CallForm::kFenced:
      return std::make_unique<FencedCallReader>();
    case CallForm::kTagged:
      return std::make_unique<TaggedCallReader>(tools);
  }
  return std::make_unique<CallObjectReader>();
}

}  // namespace outrider
