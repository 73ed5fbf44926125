// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/normalizer.h"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <new>

#include "base/utf8.h"

namespace outrider {
namespace {

constexpr size_t kMaxSteps = 64;

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char byte) { return static_cast<unsigned char>(byte) < 0x80; });
}

// A Unicode normalization form; all of them leave ASCII as it is.
std::string to_form(std::string text, int options) {
  if (is_ascii(text)) return text;
  utf8proc_uint8_t* mapped = nullptr;
  const auto length = utf8proc_map(
      reinterpret_cast<const utf8proc_uint8_t*>(text.data()), static_cast<utf8proc_ssize_t>(text.size()),
      &mapped, static_cast<utf8proc_option_t>(static_cast<int>(UTF8PROC_STABLE) | options));
  if (length < 0) throw std::bad_alloc();  // no other failure is possible for valid UTF-8 and these options
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(mapped, &std::free);
  return std::string(reinterpret_cast<const char*>(mapped), static_cast<size_t>(length));
}

std::string to_lowercase(std::string_view text) {
  constexpr uint32_t kDottedCapitalI = 0x130;  // the only character whose lower case is two characters
  constexpr std::string_view kDottedSmallI = "i\xCC\x87";
  std::string lower;
  lower.reserve(text.size());
  while (!text.empty()) {
    const utf8::CodePoint character = utf8::decode(text);
    if (character.value == kDottedCapitalI) {
      lower += kDottedSmallI;
    } else {
      utf8::append(static_cast<uint32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(character.value))),
                   lower);
    }
    text.remove_prefix(static_cast<size_t>(character.length));
  }
  return lower;
}

std::string trim(std::string_view text, bool left, bool right) {
  while (left && !text.empty() && utf8::is_space(utf8::decode(text).value)) {
    text.remove_prefix(static_cast<size_t>(utf8::decode(text).length));
  }
  while (right && !text.empty() && utf8::is_space(utf8::decode_last(text).value)) {
    text.remove_suffix(static_cast<size_t>(utf8::decode_last(text).length));
  }
  return std::string(text);
}

std::string replace(std::string_view text, const SplitPattern& pattern, std::string_view content) {
  std::vector<Segment> segments;
  pattern.find_segments(text, segments);
  std::string replaced;
  for (const Segment& segment : segments) {
    replaced += segment.is_match ? content : text.substr(segment.begin, segment.end - segment.begin);
  }
  return replaced;
}

}  // namespace

Result<Normalizer> Normalizer::create(const std::vector<NormalizerStep>& steps) {
  if (steps.size() > kMaxSteps) {
    return input_error("the normalizer has " + std::to_string(steps.size()) + " steps, at most " +
                       std::to_string(kMaxSteps) + " are supported");
  }
  Normalizer normalizer;
  for (const NormalizerStep& step : steps) {
    CompiledStep compiled{.step = step, .pattern = {}};
    if (step.kind == NormalizerKind::kReplace) {
      OUTRIDER_TRY(compiled.pattern, SplitPattern::compile(step.pattern));
    }
    normalizer.steps_.push_back(std::move(compiled));
  }
  return normalizer;
}

std::string Normalizer::apply_step(const CompiledStep& compiled, std::string text) {
  const NormalizerStep& step = compiled.step;
  switch (step.kind) {
    case NormalizerKind::kNfc:
      return to_form(std::move(text), UTF8PROC_COMPOSE);
    case NormalizerKind::kNfd:
      return to_form(std::move(text), UTF8PROC_DECOMPOSE);
    case NormalizerKind::kNfkc:
      return to_form(std::move(text), UTF8PROC_COMPOSE | UTF8PROC_COMPAT);
    case NormalizerKind::kNfkd:
      return to_form(std::move(text), UTF8PROC_DECOMPOSE | UTF8PROC_COMPAT);
    case NormalizerKind::kLowercase:
      return to_lowercase(text);
    case NormalizerKind::kTrim:
      return trim(text, step.trims_left, step.trims_right);
    case NormalizerKind::kReplace:
      return replace(text, *compiled.pattern, step.content);
    case NormalizerKind::kPrepend:
      return text.empty() ? text : step.content + text;
  }
  return text;
}

std::string Normalizer::apply(std::string_view text) const {
  std::string normalized(text);
  for (const CompiledStep& step : steps_) normalized = apply_step(step, std::move(normalized));
  return normalized;
}

}  // namespace outrider
