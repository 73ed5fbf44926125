// SPDX-License-Identifier: Apache-2.0
#include "training/head_data/initial_head.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "draft_heads/recurrent_test_data.h"

namespace outrider::training {
namespace {

std::map<std::string, at::Tensor> tensors_of(FakeHead::Matrices matrices) {
  FakeHead made;
  fill_head(made, head_golden("eagle3"));
  made.matrices = matrices;
  const auto read = read_initial_head(made.write());
  EXPECT_TRUE(read.ok()) << read.error().message;
  return {read->begin(), read->end()};
}

// Heads in 8 bits, as they come with the program, are what their codes stand for.
TEST(InitialHead, CodesAreReadAsTheNumbersTheyStandFor) {
  const auto plain = tensors_of(FakeHead::Matrices::kRounded), codes = tensors_of(FakeHead::Matrices::kBytes);
  ASSERT_TRUE(plain.contains("fc.weight"));
  ASSERT_TRUE(plain.contains("d2t"));
  ASSERT_EQ(plain.size(), codes.size());
  for (const auto& [name, tensor] : plain) EXPECT_TRUE(tensor.equal(codes.at(name))) << name;
}

}  // namespace
}  // namespace outrider::training
