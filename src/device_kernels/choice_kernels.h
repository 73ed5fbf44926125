// SPDX-License-Identifier: Apache-2.0
// The kernels of choices, see row_kernels.h.
#pragma once

#include "device_kernels/choice/chains.h"
#include "device_kernels/choice/keep_likeliest.h"
#include "device_kernels/choice/next_step.h"
#include "device_kernels/choice/race.h"

#define OUTRIDER_CHOICE_KERNELS(KERNEL)                \
  KERNEL(FindLargest, ChoiceArgs, find_largest)        \
  KERNEL(KeepLikeliest, ChoiceArgs, keep_likeliest)    \
  KERNEL(RaceTokens, ChoiceArgs, race_tokens)          \
  KERNEL(ChooseTokens, ChoiceArgs, choose_tokens)      \
  KERNEL(LeaveOut, LeaveOutArgs, leave_out)            \
  KERNEL(PlaceChains, PlaceChainsArgs, place_chains)   \
  KERNEL(StartChains, DraftChainsArgs, start_chains)   \
  KERNEL(ExtendChains, DraftChainsArgs, extend_chains) \
  KERNEL(NextStep, NextStepArgs, next_step)
