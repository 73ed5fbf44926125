// SPDX-License-Identifier: Apache-2.0
#include "engine/storage_type.h"

namespace outrider {

std::optional<DType> storage_type(WeightPrecision precision) {
  switch (precision) {
    case WeightPrecision::kAuto:
      return std::nullopt;
    case WeightPrecision::kF32:
      return DType::kF32;
    case WeightPrecision::kBF16:
      return DType::kBF16;
    case WeightPrecision::kF8:
      return DType::kF8;
    case WeightPrecision::kQ8_0:
      return DType::kQ8_0;
    case WeightPrecision::kQ8:
      return DType::kI8;
    case WeightPrecision::kQ4:
      return DType::kQ4_0;
  }
  return std::nullopt;
}

DType storage_type(KvCacheType type) {
  switch (type) {
    case KvCacheType::kF32:
      return DType::kF32;
    case KvCacheType::kF16:
      return DType::kF16;
    case KvCacheType::kE4M3:
      return DType::kE4M3;
    case KvCacheType::kQ8_0:
      return DType::kQ8_0;
    case KvCacheType::kAuto:
    case KvCacheType::kBF16:
      break;
  }
  return DType::kBF16;
}

}  // namespace outrider
