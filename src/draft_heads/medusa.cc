// SPDX-License-Identifier: Apache-2.0
#include "draft_heads/medusa.h"

#include <fmt/format.h>

#include <cmath>
#include <string_view>
#include <utility>

namespace outrider {
namespace {

std::string block_name(const MedusaShape& shape, int64_t head, int64_t block) {
  return fmt::format("{}{}.{}.linear", shape.prefix, head, block);
}

std::string output_name(const MedusaShape& shape, int64_t head) {
  return fmt::format("{}{}.{}", shape.prefix, head, shape.block_count);
}

// Config keys are optional; what they say must be so.
Status check_config(const HeadFile& head, std::string_view key, int64_t found) {
  OUTRIDER_TRY(const auto said, head.config.root().integer(key));
  if (!said || *said == found) return {};
  return head.fail(
      fmt::format("config.json says {} {}, the tensors make {}; correct config.json", key, *said, found));
}

std::vector<HeadTensor> expected_tensors(const MedusaShape& shape) {
  std::vector<HeadTensor> tensors;
  for (int64_t head = 0; head < shape.head_count; ++head) {
    for (int64_t block = 0; block < shape.block_count; ++block) {
      const std::string name = block_name(shape, head, block);
      tensors.push_back({.name = name + ".weight", .shape = {shape.hidden_size, shape.hidden_size}});
      tensors.push_back({.name = name + ".bias", .shape = {shape.hidden_size}});
    }
    tensors.push_back(
        {.name = output_name(shape, head) + ".weight", .shape = {shape.vocab_size, shape.hidden_size}});
  }
  return tensors;
}

// A checkpoint of heads and target together lists the target's tensors, too.
void allow_target_tensors(const HeadFile& head, std::vector<HeadTensor>& expected) {
  for (const auto& [name, entry] : head.tensors) {
    if (name.starts_with("model.") || name == "lm_head.weight")
      expected.push_back({.name = name, .shape = entry.shape, .is_optional = true});
  }
}

template <typename Value>
Result<std::vector<std::vector<Value>>> read_lists(const HeadFile& head, std::string_view key) {
  OUTRIDER_TRY(const auto lists, head.config.root().array(key));
  std::vector<std::vector<Value>> values;
  if (!lists) return values;
  const Error wrong =
      head.fail(fmt::format("config.json: {} must be a list of lists of numbers of 0 or more", key));
  for (const simdjson::dom::element list : *lists) {
    simdjson::dom::array numbers;
    if (list.get(numbers) != simdjson::SUCCESS) return wrong;
    values.emplace_back();
    for (const simdjson::dom::element number : numbers) {
      double value = 0;
      if (number.get(value) != simdjson::SUCCESS || value < 0 || value != value) return wrong;
      if (static_cast<double>(static_cast<Value>(value)) != value) return wrong;
      values.back().push_back(static_cast<Value>(value));
    }
  }
  return values;
}

}  // namespace

Result<MedusaShape> medusa_shape(const HeadFile& head) {
  MedusaShape shape;
  const auto find = [&](const std::string& name) {
    const auto found = head.tensors.find(name);
    return found == head.tensors.end() ? nullptr : &found->second.shape;
  };
  if (find("0.0.linear.weight") == nullptr) shape.prefix = "medusa_head.";
  while (find(block_name(shape, shape.head_count, 0) + ".weight") != nullptr) ++shape.head_count;
  while (find(block_name(shape, 0, shape.block_count) + ".weight") != nullptr) ++shape.block_count;
  const Shape* block = find(block_name(shape, 0, 0) + ".weight");
  const Shape* output = find(output_name(shape, 0) + ".weight");
  if (block == nullptr || block->size() != 2 || output == nullptr || output->size() != 2) {
    return head.fail(fmt::format("expected the matrices {0}.weight and {1}.weight of a Medusa drafter",
                                 block_name(shape, 0, 0), output_name(shape, 0)));
  }
  shape.hidden_size = (*block)[1];
  shape.vocab_size = (*output)[0];
  OUTRIDER_RETURN_IF_ERROR(check_config(head, "medusa_num_heads", shape.head_count));
  OUTRIDER_RETURN_IF_ERROR(check_config(head, "medusa_num_layers", shape.block_count));
  return shape;
}

Result<TreeChoices> medusa_tree(const HeadFile& head, size_t nodes) {
  OUTRIDER_TRY(const MedusaShape shape, medusa_shape(head));
  OUTRIDER_TRY(const TreeChoices choices, read_lists<int>(head, "medusa_choices"));
  if (!choices.empty()) {
    if (const Status checked = check_tree_choices(choices); !checked.ok())
      return head.fail("config.json: " + checked.error().message);
    return choices;
  }
  OUTRIDER_TRY(const auto accuracies, read_lists<double>(head, "medusa_accuracies"));
  if (accuracies.empty())
    return first_choices(published_choices(), static_cast<int>(shape.head_count), published_choices().size());
  TreeChoices best = best_choices(accuracies, nodes);
  if (std::ssize(accuracies) != shape.head_count || best.empty()) {
    return head.fail(
        fmt::format("config.json: medusa_accuracies must have a list for each of the {} heads, "
                    "which begins above 0",
                    shape.head_count));
  }
  return best;
}

Result<std::unique_ptr<MedusaHeads>> MedusaHeads::load(const HeadFile& head, const ModelConfig& target,
                                                       LayerBackend& backend, const ModelOptions& options) {
  OUTRIDER_TRY(MedusaShape shape, medusa_shape(head));
  if (shape.hidden_size != target.hidden_size || shape.vocab_size != target.vocab_size) {
    return head.fail(
        fmt::format("these heads were made for a target of hidden size {} and {} tokens; this one has hidden "
                    "size {} and {} tokens",
                    shape.hidden_size, shape.vocab_size, target.hidden_size, target.vocab_size));
  }
  std::vector<HeadTensor> expected = expected_tensors(shape);
  if (!shape.prefix.empty()) allow_target_tensors(head, expected);
  OUTRIDER_RETURN_IF_ERROR(check_head_tensors(head, expected));
  std::unique_ptr<MedusaHeads> heads(new MedusaHeads(std::move(shape), backend));
  OUTRIDER_RETURN_IF_ERROR(heads->load_weights(head, options));
  return heads;
}

Status MedusaHeads::load_weights(const HeadFile& head, const ModelOptions& options) {
  const auto count = static_cast<size_t>(shape_.head_count);
  const int64_t hidden = shape_.hidden_size;
  WeightLoader loader(head.file, options);
  std::vector<WeightLoader::Part> first;
  for (int64_t k = 0; k < shape_.head_count; ++k) first.push_back({block_name(shape_, k, 0), hidden});
  OUTRIDER_RETURN_IF_ERROR(loader.plan(first, hidden, true, first_));
  blocks_.resize(count);
  outputs_.resize(count);
  for (size_t k = 0; k < count; ++k) {
    const auto head_index = static_cast<int64_t>(k);
    blocks_[k].resize(static_cast<size_t>(shape_.block_count - 1));
    for (size_t i = 0; i < blocks_[k].size(); ++i) {
      const std::string name = block_name(shape_, head_index, static_cast<int64_t>(i) + 1);
      OUTRIDER_RETURN_IF_ERROR(loader.plan({{name, hidden}}, hidden, true, blocks_[k][i]));
    }
    OUTRIDER_RETURN_IF_ERROR(
        loader.plan({{output_name(shape_, head_index), shape_.vocab_size}}, hidden, false, outputs_[k]));
  }
  OUTRIDER_TRY(memory_, loader.pack_all());
  return {};
}

int64_t MedusaHeads::weight_bytes() const {
  int64_t bytes = first_.bytes();
  for (const Projection& output : outputs_) bytes += output.bytes();
  for (const auto& blocks : blocks_) {
    for (const Projection& block : blocks) bytes += block.bytes();
  }
  return bytes;
}

void MedusaHeads::reserve(int64_t rows) {
  backend_.reserve_product(first_, rows);
  for (const Projection& output : outputs_) backend_.reserve_product(output, rows);
  products_.reserve(rows, shape_.head_count * shape_.hidden_size);
  states_.reserve(rows, shape_.head_count * shape_.hidden_size);
  logits_.reserve(rows, shape_.vocab_size);
}

void MedusaHeads::start(FloatAddress states, int64_t rows) {
  reserve(rows);
  rows_ = rows;
  backend_.project(first_, states, products_.data(), rows);
  backend_.add_silu({.x = products_.data(),
                     .residual = states,
                     .y = states_.data(),
                     .rows = rows,
                     .groups = shape_.head_count,
                     .dim = shape_.hidden_size});
}

std::span<const float> MedusaHeads::logits(int64_t head) {
  const int64_t hidden = shape_.hidden_size;
  const FloatAddress state = states_.data() + head * rows_ * hidden;
  for (const Projection& block : blocks_[static_cast<size_t>(head)]) {
    backend_.project(block, state, products_.data(), rows_);
    backend_.add_silu(
        {.x = products_.data(), .residual = state, .y = state, .rows = rows_, .groups = 1, .dim = hidden});
  }
  backend_.project(outputs_[static_cast<size_t>(head)], state, logits_.data(), rows_);
  return backend_.read(logits_.data(), rows_ * shape_.vocab_size);
}

}  // namespace outrider
