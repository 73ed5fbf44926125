// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "formats/model_config.h"
#include "tensor/tensor_view.h"

namespace outrider {

struct ExpectedTensor {
  std::string name;  // Hugging Face spelling
  Shape shape;
  bool is_plain = false;  // a small matrix of numbers that are used as they are, and not multiplied with
};

// Adds tensors to a list.
class TensorList {
 public:
  TensorList(const ModelConfig& config, std::vector<ExpectedTensor>* list) : config_(config), list_(list) {}

  void matrix(std::string name, int64_t rows, int64_t cols, bool bias = false) {
    list_->push_back({name + ".weight", {rows, cols}});
    if (bias) list_->push_back({std::move(name) + ".bias", {rows}});
  }
  void norm(std::string name) {
    if (config_.norm.has_weight) list_->push_back({name + ".weight", {config_.hidden_size}});
    if (config_.norm.has_bias) list_->push_back({std::move(name) + ".bias", {config_.hidden_size}});
  }
  void vector(std::string name, int64_t size) { list_->push_back({std::move(name) + ".weight", {size}}); }
  void numbers(std::string name, int64_t rows, int64_t cols) {
    list_->push_back({std::move(name) + ".weight", {rows, cols}, /*is_plain=*/true});
  }
  void bias(std::string name, int64_t size) { list_->push_back({std::move(name) + ".bias", {size}}); }

 private:
  const ModelConfig& config_;
  std::vector<ExpectedTensor>* list_;
};

}  // namespace outrider
