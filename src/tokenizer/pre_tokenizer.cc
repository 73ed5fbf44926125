// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/pre_tokenizer.h"

#include <algorithm>

#include "tokenizer/byte_mapping.h"

namespace outrider {
namespace {

constexpr size_t kMaxRules = 64;

// Joins each match to the segment before it, except a match that follows a match.
std::vector<Segment> merge_with_previous(const std::vector<Segment>& segments) {
  std::vector<Segment> merged;
  bool after_match = false;
  for (const Segment& segment : segments) {
    if (segment.is_match && !after_match && !merged.empty()) {
      merged.back().end = segment.end;
    } else {
      merged.push_back(segment);
    }
    after_match = segment.is_match;
  }
  return merged;
}

// Joins each match to the segment after it; the mirror image of merge_with_previous.
std::vector<Segment> merge_with_next(const std::vector<Segment>& segments) {
  std::vector<Segment> merged;
  bool before_match = false;
  for (auto segment = segments.rbegin(); segment != segments.rend(); ++segment) {
    if (segment->is_match && !before_match && !merged.empty()) {
      merged.back().begin = segment->begin;
    } else {
      merged.push_back(*segment);
    }
    before_match = segment->is_match;
  }
  std::reverse(merged.begin(), merged.end());
  return merged;
}

std::vector<Segment> merge_equal_neighbours(const std::vector<Segment>& segments) {
  std::vector<Segment> merged;
  for (const Segment& segment : segments) {
    if (!merged.empty() && merged.back().is_match == segment.is_match) {
      merged.back().end = segment.end;
    } else {
      merged.push_back(segment);
    }
  }
  return merged;
}

void apply_behavior(SplitBehavior behavior, std::vector<Segment>& segments) {
  switch (behavior) {
    case SplitBehavior::kIsolated:
      return;
    case SplitBehavior::kRemoved:
      std::erase_if(segments, [](const Segment& segment) { return segment.is_match; });
      return;
    case SplitBehavior::kMergedWithPrevious:
      segments = merge_with_previous(segments);
      return;
    case SplitBehavior::kMergedWithNext:
      segments = merge_with_next(segments);
      return;
    case SplitBehavior::kContiguous:
      segments = merge_equal_neighbours(segments);
      return;
  }
}

// Turns offsets into mapped text, where a character spells a byte, into offsets into these bytes.
void unmap_offsets(std::string_view mapped, std::vector<Segment>& segments) {
  size_t position = 0;
  size_t bytes = 0;
  const auto advance_to = [&](size_t target) {
    for (; position < target; ++position)
      bytes += (static_cast<unsigned char>(mapped[position]) & 0xC0) != 0x80;
    return bytes;
  };
  for (Segment& segment : segments) {
    segment.begin = advance_to(segment.begin);
    segment.end = advance_to(segment.end);
  }
}

}  // namespace

Result<PreTokenizer> PreTokenizer::create(const std::vector<SplitRule>& rules) {
  if (rules.size() > kMaxRules) {
    return input_error("the pre-tokenizer has " + std::to_string(rules.size()) + " steps, at most " +
                       std::to_string(kMaxRules) + " are supported");
  }
  PreTokenizer pre_tokenizer;
  for (const SplitRule& rule : rules) {
    // Rules on mapped bytes may cut through characters, but patterns on text need whole ones.
    if (!rule.on_mapped_bytes && !pre_tokenizer.rules_.empty() &&
        pre_tokenizer.rules_.back().on_mapped_bytes) {
      return input_error("a split rule on text stands after one on mapped bytes; put it before");
    }
    OUTRIDER_TRY(SplitPattern pattern, SplitPattern::compile(rule.pattern));
    pre_tokenizer.rules_.push_back({std::move(pattern), rule.behavior, rule.invert, rule.on_mapped_bytes});
  }
  return pre_tokenizer;
}

std::vector<Segment> PreTokenizer::split_once(const CompiledRule& rule, std::string_view text) {
  std::vector<Segment> segments;
  if (rule.on_mapped_bytes) {
    const std::string mapped = map_bytes(text);
    rule.pattern.find_segments(mapped, segments);
    unmap_offsets(mapped, segments);
  } else {
    rule.pattern.find_segments(text, segments);
  }
  if (rule.invert) {
    for (Segment& segment : segments) segment.is_match = !segment.is_match;
  }
  apply_behavior(rule.behavior, segments);
  return segments;
}

std::vector<std::string_view> PreTokenizer::split(std::string_view text) const {
  std::vector<std::string_view> words;
  if (!text.empty()) words.push_back(text);
  for (const CompiledRule& rule : rules_) {
    std::vector<std::string_view> finer;
    for (const std::string_view word : words) {
      for (const Segment& segment : split_once(rule, word)) {
        finer.push_back(word.substr(segment.begin, segment.end - segment.begin));
      }
    }
    words = std::move(finer);
  }
  return words;
}

}  // namespace outrider
