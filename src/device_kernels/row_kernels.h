// SPDX-License-Identifier: Apache-2.0
// The kernels of rows: KERNEL(name, type of its arguments, function).
#pragma once

#include "device_kernels/rows/activation.h"
#include "device_kernels/rows/cached_heads.h"
#include "device_kernels/rows/elementwise.h"
#include "device_kernels/rows/layer_norm.h"
#include "device_kernels/rows/rms_norm.h"
#include "device_kernels/rows/rope.h"

#define OUTRIDER_ROW_KERNELS(KERNEL)                               \
  KERNEL(RmsNorm, RmsNormArgs, rms_norm)                           \
  KERNEL(LayerNorm, LayerNormArgs, layer_norm)                     \
  KERNEL(AddRows, ElementwiseArgs, elementwise<AddRows>)           \
  KERNEL(ScaleNumbers, ElementwiseArgs, elementwise<ScaleNumbers>) \
  KERNEL(ScaleRows, ElementwiseArgs, elementwise<ScaleRows>)       \
  KERNEL(ClampNumbers, ElementwiseArgs, elementwise<ClampNumbers>) \
  KERNEL(Silu, ActivationArgs, activate<Silu>)                     \
  KERNEL(Gelu, ActivationArgs, activate<Gelu>)                     \
  KERNEL(GeluTanh, ActivationArgs, activate<GeluTanh>)             \
  KERNEL(Relu, ActivationArgs, activate<Relu>)                     \
  KERNEL(ClampedSwiglu, ActivationArgs, activate<ClampedSwiglu>)   \
  KERNEL(Softcap, SoftcapArgs, softcap)                            \
  KERNEL(Rope, RopeArgs, rope)                                     \
  KERNEL(StoreF32, StoreF32Args, store_heads<CachedF32>)           \
  KERNEL(StoreBf16, StoreBf16Args, store_heads<CachedBf16>)        \
  KERNEL(StoreF16, StoreF16Args, store_heads<CachedF16>)           \
  KERNEL(StoreQ8, StoreQ8Args, store_heads<CachedQ8>)
