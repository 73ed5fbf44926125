// SPDX-License-Identifier: Apache-2.0
#include "ranks/rank_group.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace outrider {
namespace {

int place_in(const std::vector<int>& members, int rank) {
  const auto found = std::ranges::find(members, rank);
  OUTRIDER_CHECK(found != members.end());
  return static_cast<int>(found - members.begin());
}

}  // namespace

RankGroup::RankGroup(std::shared_ptr<Communicator> all, std::vector<int> members)
    : Communicator(place_in(members, all->rank()), static_cast<int>(members.size())),
      all_(std::move(all)),
      members_(std::move(members)) {}

}  // namespace outrider
