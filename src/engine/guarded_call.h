// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <string>

#include "outrider/result.h"

namespace outrider {

// Runs a call of a drafter and turns an exception into an error, because drafters may be user code.
template <typename Call>
Status guarded(Call&& call) {
  try {
    return call();
  } catch (const std::exception& error) {
    return input_error(std::string("the drafter threw: ") + error.what());
  } catch (...) {
    return input_error("the drafter threw an unknown exception");
  }
}

}  // namespace outrider
