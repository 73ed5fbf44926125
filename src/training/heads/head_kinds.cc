// SPDX-License-Identifier: Apache-2.0
#include "training/heads/head_kinds.h"

#include "training/heads/dflash_head.h"
#include "training/heads/draft_model.h"
#include "training/heads/eagle3_head.h"
#include "training/heads/eagle_head.h"
#include "training/heads/medusa_head.h"
#include "training/heads/moa_head.h"
#include "training/heads/mtp_head.h"

namespace outrider::training {

std::vector<HeadKind> head_kinds() {
  return {eagle3_kind(), eagle_kind(), mtp_kind(), medusa_kind(), moa_kind(), dflash_kind(), draft_kind()};
}

}  // namespace outrider::training
