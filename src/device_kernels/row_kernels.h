// SPDX-License-Identifier: Apache-2.0
// The kernels of rows: KERNEL(name, type of its arguments, function).
#pragma once

#include "device_kernels/rows/activation.h"
#include "device_kernels/rows/cached_heads.h"
#include "device_kernels/rows/columns.h"
#include "device_kernels/rows/elementwise.h"
#include "device_kernels/rows/layer_norm.h"
#include "device_kernels/rows/listed_rows.h"
#include "device_kernels/rows/norm_rows.h"
#include "device_kernels/rows/rms_norm.h"
#include "device_kernels/rows/rope.h"
#include "device_kernels/rows/rotate_and_store.h"
#include "device_kernels/rows/split_pairs.h"

#define OUTRIDER_ROW_KERNELS(KERNEL)                                               \
  KERNEL(RmsNorm, RmsNormArgs, rms_norm)                                           \
  KERNEL(NormRows, NormRowsArgs, norm_rows)                                        \
  KERNEL(LayerNorm, LayerNormArgs, layer_norm)                                     \
  KERNEL(AddRows, ElementwiseArgs, elementwise<AddRows>)                           \
  KERNEL(ScaleNumbers, ElementwiseArgs, elementwise<ScaleNumbers>)                 \
  KERNEL(ScaleRows, ElementwiseArgs, elementwise<ScaleRows>)                       \
  KERNEL(ClampNumbers, ElementwiseArgs, elementwise<ClampNumbers>)                 \
  KERNEL(Silu, ActivationArgs, activate<Silu>)                                     \
  KERNEL(Gelu, ActivationArgs, activate<Gelu>)                                     \
  KERNEL(GeluTanh, ActivationArgs, activate<GeluTanh>)                             \
  KERNEL(Relu, ActivationArgs, activate<Relu>)                                     \
  KERNEL(ClampedSwiglu, ActivationArgs, activate<ClampedSwiglu>)                   \
  KERNEL(Softcap, SoftcapArgs, softcap)                                            \
  KERNEL(Rope, RopeArgs, rope)                                                     \
  KERNEL(RotateAndStoreF32, RotateAndStoreF32Args, rotate_and_store<CachedF32>)    \
  KERNEL(RotateAndStoreBf16, RotateAndStoreBf16Args, rotate_and_store<CachedBf16>) \
  KERNEL(RotateAndStoreF16, RotateAndStoreF16Args, rotate_and_store<CachedF16>)    \
  KERNEL(RotateAndStoreE4m3, RotateAndStoreE4m3Args, rotate_and_store<CachedE4m3>) \
  KERNEL(RotateAndStoreQ8, RotateAndStoreQ8Args, rotate_and_store<CachedQ8>)       \
  KERNEL(AddScaledRows, ElementwiseArgs, elementwise<AddScaledRows>)               \
  KERNEL(MultiplyRows, ElementwiseArgs, elementwise<MultiplyRows>)                 \
  KERNEL(MultiplySilu, ElementwiseArgs, elementwise<MultiplySilu>)                 \
  KERNEL(MultiplySigmoid, ElementwiseArgs, elementwise<MultiplySigmoid>)           \
  KERNEL(GateRows, ElementwiseArgs, elementwise<GateRows>)                         \
  KERNEL(AddPortableSilu, ElementwiseArgs, elementwise<AddPortableSilu>)           \
  KERNEL(CopyListedRows, ListedCopyArgs, copy_listed_rows)                         \
  KERNEL(AddListedRows, ListedOperandArgs, listed_operand<SumOfRows>)              \
  KERNEL(MultiplyListedRows, ListedOperandArgs, listed_operand<ProductOfRows>)     \
  KERNEL(SplitPairs, SplitPairsArgs, split_pairs)                                  \
  KERNEL(ReadF32, ReadF32Args, read_heads<CachedF32>)                              \
  KERNEL(ReadBf16, ReadBf16Args, read_heads<CachedBf16>)                           \
  KERNEL(ReadF16, ReadF16Args, read_heads<CachedF16>)                              \
  KERNEL(ReadE4m3, ReadE4m3Args, read_heads<CachedE4m3>)                           \
  KERNEL(ReadQ8, ReadQ8Args, read_heads<CachedQ8>)                                 \
  KERNEL(PlaceColumns, ColumnsArgs, place_columns)                                 \
  KERNEL(Means, MeansArgs, means)                                                  \
  KERNEL(ConvolveBlocks, BlockConvolutionArgs, convolve_blocks)                    \
  KERNEL(StepCells, CellStepArgs, step_cells)
