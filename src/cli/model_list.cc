// SPDX-License-Identifier: Apache-2.0
#include "cli/model_list.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/thread_pool.h"
#include "cli/memory_reader.h"
#include "hub/remote/quant_name.h"
#include "platform/cpu_topology.h"

namespace outrider {

std::vector<KnownModel> fitting_models(int64_t memory) {
  constexpr int64_t kProgram = 200'000'000;  // code, caches and the scratch of passes
  std::vector<KnownModel> models;
  for (const KnownModel& known : known_models()) {
    if (models.empty() || known.bytes + kProgram <= memory) models.push_back(known);
  }
  return models;
}

double measure_memory_rate() {
  constexpr int64_t kBytes = 256 << 20;
  constexpr int kTimes = 3;
  ThreadPool pool(best_worker_count(places_of(allowed_cpus())));
  MemoryReader reader(kBytes);
  double ms = reader.time(pool);
  for (int i = 1; i < kTimes; ++i) ms = std::min(ms, reader.time(pool));
  return 1e3 * static_cast<double>(kBytes) / ms;
}

std::string model_list_text(std::span<const KnownModel> models, double read_rate) {
  std::string text;
  for (size_t i = 0; i < models.size(); ++i) {
    const KnownModel& model = models[i];
    text += fmt::format("  {:>2}  {:<14} {:>8}   at most {:.0f} tokens per second without drafts\n", i + 1,
                        model.name, size_text(model.bytes), read_rate / static_cast<double>(model.bytes));
  }
  return text;
}

}  // namespace outrider
