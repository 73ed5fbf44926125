// SPDX-License-Identifier: Apache-2.0
#include "cli/proof/verified_requests.h"

#include <fmt/format.h>

namespace outrider {

std::vector<Mode> modes_for(const Settings& settings) {
  const SamplingParams& sampling = settings.request.sampling;
  SamplingParams greedy = sampling;
  greedy.temperature = 0;
  std::vector<Mode> modes = {{"greedy", greedy}};
  if (sampling.temperature > 0 && acceptance_rule(settings.engine) == AcceptanceRule::kCoupled) {
    modes.push_back({fmt::format("sampled (temperature {}, top-p {}, seed {})", sampling.temperature,
                                 sampling.top_p, sampling.seed),
                     sampling});
  }
  return modes;
}

std::vector<Request> requests_for(const Settings& settings, const PreparedPrompts& prepared,
                                  const SamplingParams& sampling) {
  std::vector<Request> requests(prepared.records.size(), settings.request);
  for (size_t i = 0; i < requests.size(); ++i) {
    requests[i].prompt = prepared.tokens[i];
    requests[i].sampling = sampling;
    requests[i].sampling.seed += i;
  }
  return requests;
}

}  // namespace outrider
