// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "models/backend/block_step.h"
#include "models/blocks/low_rank/device_low_rank.h"
#include "models/blocks/low_rank/low_rank_ops.h"

namespace outrider {

struct LowRankStep final : BlockStep {
  std::string_view name() const override { return "adapters"; }
  StepNames names() override {
    return {.weights = projection,
            .rows = {{&x, row_count * projection->k}, {&y, row_count * projection->n, RowUse::kChange}}};
  }
  void run(Host& host) override {
    host.shared<LowRankOps>(host.ops()).run({*adapters, *projection, rows, host.at(x), host.at(y)});
  }
  void run(DeviceOps& device) override {
    device.shared<DeviceLowRank>(device).run({*adapters, *projection, rows, x, y});
  }

  const AdapterSet* adapters = nullptr;
  const Projection* projection = nullptr;
  std::span<const AdaptedRows> rows;
  FloatAddress x, y;      // of all rows of the pass
  int64_t row_count = 0;  // of the pass
};

}  // namespace outrider
