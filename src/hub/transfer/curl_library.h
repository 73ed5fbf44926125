// SPDX-License-Identifier: Apache-2.0
#pragma once

// Versions of libcurl before 7.85, which machines still have, know only the older options for protocols.
#define CURL_DISABLE_DEPRECATION
#include <curl/curl.h>

#include "outrider/result.h"

namespace outrider {

// The functions of libcurl that fetch models. The library is opened when it is asked for: it brings some
// twenty others, which no program needs that fetches nothing.
struct CurlLibrary {
  decltype(&curl_global_init) global_init = nullptr;
  decltype(&curl_easy_init) init = nullptr;
  decltype(&curl_easy_cleanup) cleanup = nullptr;
  decltype(&curl_easy_reset) reset = nullptr;
  decltype(&curl_easy_setopt) set = nullptr;
  decltype(&curl_easy_getinfo) get_info = nullptr;
  decltype(&curl_easy_perform) perform = nullptr;
  decltype(&curl_easy_strerror) text_of = nullptr;
};

// Opens it once, for good. Error: the machine has no libcurl.
Result<const CurlLibrary*> curl_library();

}  // namespace outrider
