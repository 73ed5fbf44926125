// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <string>

#include "outrider/result.h"

namespace outrider {

// Runs code of users, or a call that only speed depends on, and turns an exception into an error: drafters,
// functions of logits, and the keeping of slots and prompts.
template <typename Call>
Status guarded(Call&& call) {
  try {
    return call();
  } catch (const std::exception& error) {
    return input_error(std::string("it threw: ") + error.what());
  } catch (...) {
    return input_error("it threw an unknown exception");
  }
}

}  // namespace outrider
