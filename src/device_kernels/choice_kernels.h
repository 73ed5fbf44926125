// SPDX-License-Identifier: Apache-2.0
// The kernels of choices, see row_kernels.h.
#pragma once

#include "device_kernels/choice/keep_likeliest.h"
#include "device_kernels/choice/next_step.h"
#include "device_kernels/choice/race.h"
#include "device_kernels/choice/tree_growth.h"

#define OUTRIDER_CHOICE_KERNELS(KERNEL)                 \
  KERNEL(FindLargest, ChoiceArgs, find_largest)         \
  KERNEL(RaceTokens, ChoiceArgs, race_tokens)           \
  KERNEL(LeaveOut, LeaveOutArgs, leave_out)             \
  KERNEL(ListFirst, ListFirstArgs, list_first)          \
  KERNEL(StartTrees, DraftTreesArgs, start_trees)       \
  KERNEL(GrowTrees, DraftTreesArgs, grow_trees)         \
  KERNEL(CutTrees, DraftTreesArgs, cut_trees)           \
  KERNEL(PlaceTrees, PlaceTreesArgs, place_trees)       \
  KERNEL(WalkTrees, WalkTreesArgs, walk_trees)          \
  KERNEL(PlaceAccepted, PlaceTreesArgs, place_accepted) \
  KERNEL(HideEntries, HideEntriesArgs, hide_entries)    \
  KERNEL(MoveEntries, MoveEntriesArgs, move_entries)    \
  KERNEL(NextStep, NextStepArgs, next_step)
