// SPDX-License-Identifier: Apache-2.0
#include "draft_heads/vocabulary/output_rows.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>

#include "config/methods.h"
#include "draft_heads/vocabulary/vocabulary_map.h"
#include "formats/derived_rows.h"

namespace outrider {
namespace {

// The rows, and the storage of the file before they were added.
struct RowStorage {
  std::shared_ptr<void> before;
  ChosenRows rows;
};

bool drafts_with_target_head(const HeadFile& head) {
  const HeadTraits& traits = method_row(head.method).head;
  return traits.drafts_with_target_head && !head.tensors.contains(traits.own_output_head);
}

// The ids of d2t; empty: the head has none.
Result<std::vector<TokenId>> own_ids(const HeadFile& head, int64_t vocab_size) {
  const auto map = head.tensors.find("d2t");
  if (map == head.tensors.end()) return std::vector<TokenId>();
  if (map->second.shape.size() != 1)
    return head.fail("tensor d2t: expected one dimension, found " + shape_text(map->second.shape));
  return read_vocabulary_map(head, map->second.shape.front(), vocab_size);
}

Result<TensorView> output_head(const ModelFile& model) {
  const auto found =
      model.tensors.find(model.config.tied_embeddings ? "model.embed_tokens.weight" : "lm_head.weight");
  if (found != model.tensors.end() && model.config.token_size() == model.config.hidden_size)
    return found->second;
  return input_error("speculative_token_map: expected a model whose output head reads its states, found " +
                     model.config.family);
}

}  // namespace

Status add_output_rows(ModelFile& file, const ModelFile& model, std::vector<TokenId> ids) {
  if (ids.front() < 0 || ids.back() >= model.config.vocab_size) {
    return usage_error(fmt::format("speculative_token_map: expected ids of the {} tokens of {}, found {}",
                                   model.config.vocab_size, model.path.string(),
                                   ids.front() < 0 ? ids.front() : ids.back()));
  }
  OUTRIDER_TRY(TensorView whole, output_head(model));
  TensorView rows{.dtype = whole.dtype, .shape = {std::ssize(ids), whole.cols()}};
  auto storage = std::make_shared<RowStorage>(
      RowStorage{std::move(file.storage), ChosenRows(std::move(whole), std::move(ids))});
  rows.source = &storage->rows;
  file.tensors.insert_or_assign(std::string(kOutputRows), std::move(rows));
  file.storage = std::move(storage);
  return {};
}

Status take_output_rows(HeadFile& head, const ModelFile& target, std::span<const TokenId> token_map) {
  std::vector<TokenId> ids(token_map.begin(), token_map.end());
  if (!drafts_with_target_head(head)) {
    if (ids.empty()) return {};
    return head.fail(
        fmt::format("this {} drafter has an output head of its own; leave "
                    "speculative_token_map out",
                    method_name(head.method)));
  }
  if (ids.empty()) {
    OUTRIDER_TRY(ids, own_ids(head, target.config.vocab_size));
  }
  if (ids.empty()) return {};
  OUTRIDER_RETURN_IF_ERROR(add_output_rows(head.file, target, ids));
  head.output_rows = std::move(ids);
  return {};
}

void append_map_tensors(const HeadFile& head, int64_t vocab_size, std::vector<HeadTensor>& expected) {
  const auto map = head.tensors.find("d2t");
  if (map == head.tensors.end()) return;
  expected.push_back({.name = "d2t", .shape = map->second.shape});
  expected.push_back({.name = "t2d", .shape = {vocab_size}, .is_optional = true});
}

}  // namespace outrider
