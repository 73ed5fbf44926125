// SPDX-License-Identifier: Apache-2.0
// Makes the kernels of a list functions that the emulator can call.
#pragma once

#include "device_kernels/simt/emulator.h"

#define OUTRIDER_EMULATED_FUNCTION(name, Args, ...)       \
  void run_##name(const Block& block, const void* args) { \
    __VA_ARGS__(block, *static_cast<const Args*>(args));  \
  }
#define OUTRIDER_EMULATED_NAME(name, Args, ...) run_##name,
