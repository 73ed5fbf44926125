// SPDX-License-Identifier: Apache-2.0
// The kernels of products, see row_kernels.h.
#pragma once

#include "device_kernels/products/channel_products.h"
#include "device_kernels/products/float_products.h"
#include "device_kernels/products/look_up.h"
#include "device_kernels/products/pack_inputs.h"
#include "device_kernels/products/stacked_products.h"
#include "device_kernels/rows/activated_products.h"

#define OUTRIDER_PRODUCT_KERNELS(KERNEL)                                                                   \
  KERNEL(PackInputs, PackInputsArgs, pack_inputs)                                                          \
  KERNEL(FewRowsCentredNibbles, GroupedProductArgs, few_rows<CentredNibbles>)                              \
  KERNEL(FewRowsMinNibbles, GroupedProductArgs, few_rows<MinNibbles>)                                      \
  KERNEL(FewRowsNarrowMinNibbles, GroupedProductArgs, few_rows<NarrowMinNibbles>)                          \
  KERNEL(FewRowsTableNibbles, GroupedProductArgs, few_rows<TableNibbles>)                                  \
  KERNEL(FewRowsNarrowTableNibbles, GroupedProductArgs, few_rows<NarrowTableNibbles>)                      \
  KERNEL(FewRowsBytes, GroupedProductArgs, few_rows<ByteCodes>)                                            \
  KERNEL(FewRowsMinBytes, GroupedProductArgs, few_rows<MinBytes>)                                          \
  KERNEL(FewRowsNarrowBytes, GroupedProductArgs, few_rows<NarrowBytes>)                                    \
  KERNEL(ActivatedFewRowsCentredNibbles, ActivatedProductArgs, activated_few_rows<CentredNibbles>)         \
  KERNEL(ActivatedFewRowsMinNibbles, ActivatedProductArgs, activated_few_rows<MinNibbles>)                 \
  KERNEL(ActivatedFewRowsNarrowMinNibbles, ActivatedProductArgs, activated_few_rows<NarrowMinNibbles>)     \
  KERNEL(ActivatedFewRowsTableNibbles, ActivatedProductArgs, activated_few_rows<TableNibbles>)             \
  KERNEL(ActivatedFewRowsNarrowTableNibbles, ActivatedProductArgs, activated_few_rows<NarrowTableNibbles>) \
  KERNEL(ActivatedFewRowsBytes, ActivatedProductArgs, activated_few_rows<ByteCodes>)                       \
  KERNEL(ActivatedFewRowsMinBytes, ActivatedProductArgs, activated_few_rows<MinBytes>)                     \
  KERNEL(ActivatedFewRowsNarrowBytes, ActivatedProductArgs, activated_few_rows<NarrowBytes>)               \
  KERNEL(ManyRowsCentredNibbles, GroupedProductArgs, many_rows<CentredNibbles>)                            \
  KERNEL(ManyRowsMinNibbles, GroupedProductArgs, many_rows<MinNibbles>)                                    \
  KERNEL(ManyRowsNarrowMinNibbles, GroupedProductArgs, many_rows<NarrowMinNibbles>)                        \
  KERNEL(ManyRowsTableNibbles, GroupedProductArgs, many_rows<TableNibbles>)                                \
  KERNEL(ManyRowsNarrowTableNibbles, GroupedProductArgs, many_rows<NarrowTableNibbles>)                    \
  KERNEL(ManyRowsBytes, GroupedProductArgs, many_rows<ByteCodes>)                                          \
  KERNEL(ManyRowsMinBytes, GroupedProductArgs, many_rows<MinBytes>)                                        \
  KERNEL(ManyRowsNarrowBytes, GroupedProductArgs, many_rows<NarrowBytes>)                                  \
  KERNEL(PackChannelInputs, PackChannelInputsArgs, pack_channel_inputs)                                    \
  KERNEL(FewChannelRows, ChannelProductArgs, few_channel_rows)                                             \
  KERNEL(ManyChannelRows, ChannelProductArgs, many_channel_rows)                                           \
  KERNEL(F32Rows, F32ProductArgs, float_rows<F32Weights>)                                                  \
  KERNEL(F16Rows, F16ProductArgs, float_rows<F16Weights>)                                                  \
  KERNEL(Bf16Rows, Bf16ProductArgs, float_rows<Bf16Weights>)                                               \
  KERNEL(F8Rows, F8ProductArgs, float_rows<F8Weights>)                                                     \
  KERNEL(StackedFewRowsCentredNibbles, StackedGroupedArgs, stacked<few_rows<CentredNibbles>>)              \
  KERNEL(StackedFewRowsMinNibbles, StackedGroupedArgs, stacked<few_rows<MinNibbles>>)                      \
  KERNEL(StackedFewRowsNarrowMinNibbles, StackedGroupedArgs, stacked<few_rows<NarrowMinNibbles>>)          \
  KERNEL(StackedFewRowsTableNibbles, StackedGroupedArgs, stacked<few_rows<TableNibbles>>)                  \
  KERNEL(StackedFewRowsNarrowTableNibbles, StackedGroupedArgs, stacked<few_rows<NarrowTableNibbles>>)      \
  KERNEL(StackedFewRowsBytes, StackedGroupedArgs, stacked<few_rows<ByteCodes>>)                            \
  KERNEL(StackedFewRowsMinBytes, StackedGroupedArgs, stacked<few_rows<MinBytes>>)                          \
  KERNEL(StackedFewRowsNarrowBytes, StackedGroupedArgs, stacked<few_rows<NarrowBytes>>)                    \
  KERNEL(StackedChannelRows, StackedChannelArgs, stacked<few_channel_rows>)                                \
  KERNEL(StackedF32Rows, StackedF32Args, stacked<float_rows<F32Weights>>)                                  \
  KERNEL(StackedF16Rows, StackedF16Args, stacked<float_rows<F16Weights>>)                                  \
  KERNEL(StackedBf16Rows, StackedBf16Args, stacked<float_rows<Bf16Weights>>)                               \
  KERNEL(StackedF8Rows, StackedF8Args, stacked<float_rows<F8Weights>>)                                     \
  KERNEL(LookUpCentredNibbles, GroupedTableArgs, look_up_grouped<CentredNibbles>)                          \
  KERNEL(LookUpMinNibbles, GroupedTableArgs, look_up_grouped<MinNibbles>)                                  \
  KERNEL(LookUpNarrowMinNibbles, GroupedTableArgs, look_up_grouped<NarrowMinNibbles>)                      \
  KERNEL(LookUpTableNibbles, GroupedTableArgs, look_up_grouped<TableNibbles>)                              \
  KERNEL(LookUpNarrowTableNibbles, GroupedTableArgs, look_up_grouped<NarrowTableNibbles>)                  \
  KERNEL(LookUpBytes, GroupedTableArgs, look_up_grouped<ByteCodes>)                                        \
  KERNEL(LookUpMinBytes, GroupedTableArgs, look_up_grouped<MinBytes>)                                      \
  KERNEL(LookUpNarrowBytes, GroupedTableArgs, look_up_grouped<NarrowBytes>)                                \
  KERNEL(LookUpChannels, ChannelTableArgs, look_up_channel)                                                \
  KERNEL(LookUpF32, F32TableArgs, look_up_floats<F32Weights>)                                              \
  KERNEL(LookUpF16, F16TableArgs, look_up_floats<F16Weights>)                                              \
  KERNEL(LookUpBf16, Bf16TableArgs, look_up_floats<Bf16Weights>)                                           \
  KERNEL(LookUpCodes, CodeTableArgs, look_up_codes)
