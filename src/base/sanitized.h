// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace outrider {

// A sanitizer watches this program, which takes more memory and time then. g++ and clang tell it differently.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kIsSanitized = true;
#elif defined(__has_feature)
inline constexpr bool kIsSanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
inline constexpr bool kIsSanitized = false;
#endif

// A random test under a sanitizer runs a tenth of its times: a sanitizer looks for mistakes of every run.
constexpr int repetitions(int times) { return kIsSanitized ? (times + 9) / 10 : times; }

}  // namespace outrider
