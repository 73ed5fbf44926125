// SPDX-License-Identifier: Apache-2.0
#include "hub/transfer/curl_library.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <string>

namespace outrider {
namespace {

// The name of the library as curl's own and as Debian's with another library for encryption.
constexpr std::array<const char*, 2> kNames = {"libcurl.so.4", "libcurl-gnutls.so.4"};

template <typename Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

bool find_functions(void* library, CurlLibrary& curl) {
  return find(library, "curl_global_init", curl.global_init) && find(library, "curl_easy_init", curl.init) &&
         find(library, "curl_easy_cleanup", curl.cleanup) && find(library, "curl_easy_reset", curl.reset) &&
         find(library, "curl_easy_setopt", curl.set) && find(library, "curl_easy_getinfo", curl.get_info) &&
         find(library, "curl_easy_perform", curl.perform) &&
         find(library, "curl_easy_strerror", curl.text_of);
}

Result<CurlLibrary> open_library() {
  std::string problem;
  for (const char* name : kNames) {
    CurlLibrary curl;
    void* library = dlopen(name, RTLD_NOW | RTLD_LOCAL | OUTRIDER_CURL_FLAGS);
    if (library != nullptr && find_functions(library, curl)) {
      if (const CURLcode code = curl.global_init(CURL_GLOBAL_DEFAULT); code != CURLE_OK)
        return resource_error(fmt::format("{} does not start: {}", name, curl.text_of(code)));
      return curl;
    }
    const char* text = dlerror();
    if (problem.empty()) problem = text != nullptr ? text : "it lacks functions";
  }
  return resource_error(
      fmt::format("expected libcurl, which fetches models, found none: {}; install it (Debian: libcurl4), or "
                  "bring the model here by other means",
                  problem));
}

}  // namespace

Result<const CurlLibrary*> curl_library() {
  static const Result<CurlLibrary> opened = open_library();
  if (!opened.ok()) return opened.error();
  return &opened.value();
}

}  // namespace outrider
