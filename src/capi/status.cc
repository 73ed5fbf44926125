// SPDX-License-Identifier: Apache-2.0
#include "capi/status.h"

#include <cstdlib>
#include <string>

namespace outrider {
namespace {

// A fixed text where not even a message can be allocated.
struct LastError {
  std::string message;
  const char* text = "";
};
thread_local LastError last_error;

outrider_status status_of_kind(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kUsage:
      return OUTRIDER_ERROR_USAGE;
    case ErrorKind::kInput:
      return OUTRIDER_ERROR_INPUT;
    case ErrorKind::kIo:
      return OUTRIDER_ERROR_IO;
    case ErrorKind::kResource:
      return OUTRIDER_ERROR_RESOURCE;
  }
  return OUTRIDER_ERROR_INPUT;
}

}  // namespace

outrider_status failed(const Error& error) noexcept {
  try {
    last_error.message = error.message;
    last_error.text = last_error.message.c_str();
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  }
  return status_of_kind(error.kind);
}

outrider_status out_of_memory() noexcept {
  last_error.text = "out of memory; a smaller ctx, max_batch or weights needs less";
  return OUTRIDER_ERROR_RESOURCE;
}

}  // namespace outrider

const char* outrider_version(void) { return OUTRIDER_VERSION; }

int outrider_api_version(void) { return OUTRIDER_API_MAJOR * 1000 + OUTRIDER_API_MINOR; }

const char* outrider_last_error(void) { return outrider::last_error.text; }

void outrider_free(void* memory) { std::free(memory); }
