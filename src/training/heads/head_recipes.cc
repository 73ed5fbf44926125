// SPDX-License-Identifier: Apache-2.0
#include "training/heads/head_recipes.h"

#include "training/heads/dflash_head.h"
#include "training/heads/draft_model.h"
#include "training/heads/dspark_head.h"
#include "training/heads/eagle3_head.h"
#include "training/heads/eagle_head.h"
#include "training/heads/medusa_head.h"
#include "training/heads/moa_head.h"
#include "training/heads/mtp_head.h"
#include "training/heads/pard_model.h"

namespace outrider::training {

std::vector<HeadRecipe> head_recipes() {
  return {eagle3_recipe(), peagle_recipe(), eagle_recipe(),  mtp_recipe(),   medusa_recipe(),
          moa_recipe(),    dflash_recipe(), dspark_recipe(), draft_recipe(), pard_recipe()};
}

}  // namespace outrider::training
