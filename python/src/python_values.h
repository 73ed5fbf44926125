// SPDX-License-Identifier: Apache-2.0
// Values of the engine as Python's own: dictionaries, lists and numpy arrays, which the package makes objects
// of.
#pragma once

#include <nanobind/nanobind.h>

#include <span>
#include <string_view>
#include <vector>

#include "outrider/engine.h"

namespace outrider::py {

namespace nb = nanobind;

// Bytes that are not UTF-8 become U+FFFD.
nb::object text_of(std::string_view text);
nb::list ids_of(std::span<const TokenId> tokens);
nb::list origins_of(std::span<const TokenOrigin> origins);

// A numpy array of that shape, which owns the numbers.
nb::object array_of(std::vector<float> values, std::vector<size_t> shape);
nb::object array_of(std::vector<TokenId> values, std::vector<size_t> shape);

// A function of Python that gets the tokens and changes the logits, both as numpy arrays, in place.
LogitsFunction logits_function_of(nb::object function);

nb::dict completion_of(const Completion& completion, std::span<const StepTrace> steps);
nb::dict info_of(const EngineInfo& info);
nb::dict status_of_engine(const EngineStatus& status);

// Raises ValueError, OSError or MemoryError with the message.
[[noreturn]] void raise(const Error& error);

// The value, or the raised error.
template <typename T>
T value_of(Result<T> result) {
  if (!result.ok()) raise(result.error());
  return std::move(result).value();
}

}  // namespace outrider::py
