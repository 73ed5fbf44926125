// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>

#include "base/thread_pool.h"
#include "kernels/kernel_table.h"

namespace outrider {

// The most operations per second that all workers can do, by the inputs of the products.
std::map<InputLayout, double> measure_product_peaks(const KernelTable& kernels, ThreadPool& pool);

}  // namespace outrider
