// SPDX-License-Identifier: Apache-2.0
#include "draft_heads/vocabulary/vocabulary_map.h"

#include <fmt/format.h>

#include <cstring>

namespace outrider {
namespace {

Status check_type(const HeadFile& head, const char* name, std::string_view found, std::string_view expected) {
  if (found == expected) return {};
  return head.fail(fmt::format("tensor {}: expected the type {}, found {}", name, expected, found));
}

Status check_inverse(const HeadFile& head, std::span<const TokenId> ids) {
  const auto inverse = head.tensors.find("t2d");
  if (inverse == head.tensors.end()) return {};
  OUTRIDER_RETURN_IF_ERROR(check_type(head, "t2d", inverse->second.dtype_name, "BOOL"));
  size_t next = 0;
  for (size_t id = 0; id < inverse->second.data.size(); ++id) {
    const bool is_known = ids.empty() || (next < ids.size() && std::cmp_equal(ids[next], id));
    if ((inverse->second.data[id] != std::byte{0}) != is_known)
      return head.fail(fmt::format("tensors d2t and t2d disagree about token {}", id));
    next += is_known ? 1 : 0;
  }
  return {};
}

}  // namespace

Result<std::vector<TokenId>> read_vocabulary_map(const HeadFile& head, int64_t draft_vocab,
                                                 int64_t target_vocab) {
  std::vector<TokenId> ids;
  if (const auto map = head.tensors.find("d2t"); map != head.tensors.end()) {
    OUTRIDER_RETURN_IF_ERROR(check_type(head, "d2t", map->second.dtype_name, "I64"));
    int64_t last = -1;
    for (int64_t row = 0; row < draft_vocab; ++row) {
      int64_t offset = 0;
      std::memcpy(&offset, map->second.data.data() + row * int64_t{sizeof offset}, sizeof offset);
      const bool is_possible = offset >= -row && offset < target_vocab - row;
      if (!is_possible || row + offset <= last) {
        return head.fail(
            fmt::format("tensor d2t: expected offsets that give rising ids below {}, found {} at {}",
                        target_vocab, offset, row));
      }
      last = row + offset;
      ids.push_back(static_cast<TokenId>(last));
    }
  }
  OUTRIDER_RETURN_IF_ERROR(check_inverse(head, ids));
  return ids;
}

}  // namespace outrider
