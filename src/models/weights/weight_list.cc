// SPDX-License-Identifier: Apache-2.0
#include "models/weights/weight_list.h"

namespace outrider {
namespace {

int64_t plain_numbers(const WeightList& list) {
  int64_t count = 0;
  for (const Norm* norm : list.norms) count += norm->parameter_count();
  for (const std::vector<float>* numbers : list.numbers) count += std::ssize(*numbers);
  return count;
}

}  // namespace

int64_t WeightList::parameter_count() const {
  int64_t count = plain_numbers(*this);
  for (const Projection* projection : projections) count += projection->parameter_count();
  return count;
}

int64_t WeightList::bytes() const {
  int64_t total = plain_numbers(*this) * static_cast<int64_t>(sizeof(float));
  for (const Projection* projection : projections) total += projection->bytes();
  return total;
}

}  // namespace outrider
