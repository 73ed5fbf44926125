// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/split_pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <new>

#include "base/quote.h"
#include "base/utf8.h"

namespace outrider {

template <typename T, void (*Free)(T*)>
struct Pcre2Deleter {
  void operator()(T* pointer) const { Free(pointer); }
};

namespace {

// The limit of steps per match. Patterns of published tokenizers need a few steps per character; catastrophic
// ones reach the limit within milliseconds.
constexpr uint32_t kMatchLimit = 100'000;
constexpr uint32_t kHeapLimitKib = 64 * 1024;
constexpr uint32_t kMaxGroupDepth = 100;

using Code = std::unique_ptr<pcre2_code, Pcre2Deleter<pcre2_code, pcre2_code_free>>;
using MatchData = std::unique_ptr<pcre2_match_data, Pcre2Deleter<pcre2_match_data, pcre2_match_data_free>>;
using CompileContext =
    std::unique_ptr<pcre2_compile_context, Pcre2Deleter<pcre2_compile_context, pcre2_compile_context_free>>;
using MatchContext =
    std::unique_ptr<pcre2_match_context, Pcre2Deleter<pcre2_match_context, pcre2_match_context_free>>;

template <typename Pointer>
Pointer require_memory(Pointer pointer) {
  if (!pointer) throw std::bad_alloc();
  return pointer;
}

}  // namespace

struct SplitPattern::Impl {
  Code code;
  MatchContext context;
};

SplitPattern::SplitPattern(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
SplitPattern::~SplitPattern() = default;
SplitPattern::SplitPattern(SplitPattern&&) noexcept = default;
SplitPattern& SplitPattern::operator=(SplitPattern&&) noexcept = default;

Result<SplitPattern> SplitPattern::compile(std::string_view pattern) {
  OUTRIDER_TRY(const std::string translated, translate_to_pcre2(pattern));
  const CompileContext compile_context =
      require_memory(CompileContext(pcre2_compile_context_create(nullptr)));
  pcre2_set_newline(compile_context.get(), PCRE2_NEWLINE_LF);
  pcre2_set_parens_nest_limit(compile_context.get(), kMaxGroupDepth);

  auto impl = std::make_unique<Impl>();
  int error_code = 0;
  PCRE2_SIZE error_offset = 0;
  // Oniguruma's ^ and $ match at the borders of lines.
  impl->code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
                                 PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C,
                                 &error_code, &error_offset, compile_context.get()));
  if (!impl->code) {
    PCRE2_UCHAR message[256] = {};
    pcre2_get_error_message(error_code, message, sizeof message);
    return input_error("split pattern " + quote(pattern) +
                       " does not compile: " + reinterpret_cast<const char*>(message));
  }
  // Where executable memory is not available, matching is slower and gives the same result.
  static_cast<void>(pcre2_jit_compile(impl->code.get(), PCRE2_JIT_COMPLETE));
  impl->context = require_memory(MatchContext(pcre2_match_context_create(nullptr)));
  pcre2_set_match_limit(impl->context.get(), kMatchLimit);
  pcre2_set_heap_limit(impl->context.get(), kHeapLimitKib);
  return SplitPattern(std::move(impl));
}

void SplitPattern::find_segments(std::string_view text, std::vector<Segment>& segments) const {
  const MatchData match = require_memory(MatchData(pcre2_match_data_create(1, nullptr)));
  const PCRE2_SIZE* span = pcre2_get_ovector_pointer(match.get());
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  size_t covered = 0;  // offset; all text before it is in a segment
  size_t search_from = 0;
  bool matched_before = false;
  while (search_from <= text.size() && !text.empty()) {
    int count = pcre2_jit_match(impl_->code.get(), subject, text.size(), search_from, 0, match.get(),
                                impl_->context.get());
    if (count == PCRE2_ERROR_JIT_STACKLIMIT || count == PCRE2_ERROR_JIT_BADOPTION) {
      count = pcre2_match(impl_->code.get(), subject, text.size(), search_from,
                          PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, match.get(), impl_->context.get());
    }
    if (count < 0) break;
    const size_t begin = span[0];
    const size_t end = span[1];
    if (begin == end && matched_before &&
        begin == covered) {  // an empty match right after a match does not count
      const int step = search_from < text.size() ? utf8::decode(text.substr(search_from)).length : 1;
      search_from += static_cast<size_t>(step);
      continue;
    }
    if (covered < begin) segments.push_back({covered, begin, false});
    if (begin < end) segments.push_back({begin, end, true});
    covered = search_from = end;
    matched_before = true;
  }
  if (covered < text.size()) segments.push_back({covered, text.size(), false});
}

}  // namespace outrider
