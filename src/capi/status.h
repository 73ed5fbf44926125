// SPDX-License-Identifier: Apache-2.0
// Errors and exceptions of the C++ API as errors of the C API.
#pragma once

#include <exception>
#include <new>

#include "outrider/outrider.h"
#include "outrider/result.h"

namespace outrider {

// Keep a message for outrider_last_error().
outrider_status failed(const Error& error) noexcept;
outrider_status out_of_memory() noexcept;

// Runs a call that returns a Status; exceptions become errors.
template <typename Call>
outrider_status status_of(Call&& call) noexcept {
  try {
    const Status status = call();
    return status.ok() ? OUTRIDER_OK : failed(status.error());
  } catch (const std::bad_alloc&) {
    return out_of_memory();
  } catch (const std::exception& error) {
    return failed(input_error(error.what()));
  }
}

// Runs a call that makes an object; nullptr: there is no memory.
template <typename Make>
auto made_by(Make&& make) noexcept -> decltype(make()) {
  try {
    return make();
  } catch (const std::bad_alloc&) {
    out_of_memory();
    return nullptr;
  }
}

}  // namespace outrider
