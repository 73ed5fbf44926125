// SPDX-License-Identifier: Apache-2.0
// The kernels of single kinds of layers, see row_kernels.h.
#pragma once

#include "device_kernels/experts/choose_experts.h"
#include "device_kernels/experts/group_choices.h"
#include "device_kernels/states/convolution.h"
#include "device_kernels/states/delta_steps.h"

#define OUTRIDER_BLOCK_KERNELS(KERNEL)                     \
  KERNEL(ChooseExperts, ChooseExpertsArgs, choose_experts) \
  KERNEL(CountChoices, GroupChoicesArgs, count_choices)    \
  KERNEL(PlaceChoices, GroupChoicesArgs, place_choices)    \
  KERNEL(WeightedSums, WeightedSumsArgs, weighted_sums)    \
  KERNEL(Convolve, ConvolveArgs, convolve<PlainSums>)      \
  KERNEL(ConvolveGated, ConvolveArgs, convolve<GatedSums>) \
  KERNEL(PushInputs, PushInputsArgs, push_inputs)          \
  KERNEL(DeltaRates, DeltaRatesArgs, delta_rates)          \
  KERNEL(DeltaSteps, DeltaStepsArgs, delta_steps)
