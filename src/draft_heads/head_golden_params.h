// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernels/kernel_table.h"

namespace outrider {

// The circumstances in which a head is compared with its golden file.
struct HeadGoldenParam {
  std::string kernels;
  int page_size;  // tokens per KV page
};

inline std::vector<HeadGoldenParam> head_golden_params() {
  std::vector<HeadGoldenParam> params;
  for (const auto kernels : available_kernels()) {
    for (const int page_size : {1, 16}) params.push_back({std::string(kernels), page_size});
  }
  return params;
}

inline std::string head_golden_name(const testing::TestParamInfo<HeadGoldenParam>& info) {
  return info.param.kernels + "_page_" + std::to_string(info.param.page_size);
}

}  // namespace outrider
