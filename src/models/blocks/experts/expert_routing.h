// SPDX-License-Identifier: Apache-2.0
// Routing in a mixture of experts: which experts a row chooses, and which rows an expert serves.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "formats/model_config.h"

namespace outrider {

struct ExpertChoice {
  int32_t expert = 0;
  float weight = 0;
};

// The router's outputs for one row.
struct RouterRow {
  const ExpertTraits& traits;
  const float* outputs = nullptr;           // [traits.count]
  std::span<const float> choice_bias = {};  // [traits.count], or empty
};

// Writes the traits.used choices of a row, best first. Among equal experts, and equal groups, the one with
// the lower number comes first; NaN counts as the lowest value.
void choose_experts(const RouterRow& row, ExpertChoice* choices);

// The choices of all rows of a pass, sorted by expert. Every choice has a place; the places of an expert
// follow one another, in the order of the rows.
class ExpertGroups {
 public:
  struct Group {
    int32_t expert = 0;
    int64_t begin = 0;  // of its places
    int64_t rows = 0;
  };

  // Allows sort() of that many choices without allocation.
  void reserve(int64_t choices, int64_t experts);
  // `choices` is [rows, used].
  void sort(std::span<const ExpertChoice> choices, int64_t used, int64_t experts);

  std::span<const Group> groups() const { return groups_; }  // experts that a row chose, ascending
  std::span<const int32_t> row_of_place() const { return row_of_place_; }        // [choices]
  std::span<const int32_t> place_of_choice() const { return place_of_choice_; }  // [rows, used]

 private:
  std::vector<Group> groups_;
  std::vector<int32_t> row_of_place_;
  std::vector<int32_t> place_of_choice_;
  std::vector<int32_t> next_;  // [experts]: the place of its next choice
};

}  // namespace outrider
