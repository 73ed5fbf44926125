// SPDX-License-Identifier: Apache-2.0
#include "training/evaluation/head_report.h"

#include <nlohmann/json.hpp>
#include <string_view>

#include "web/filled_html.h"

namespace outrider {

// The build makes it from report_page/.
extern const std::string_view kTrainingPage;

}  // namespace outrider

namespace outrider::training {

using nlohmann::json;

std::string render_head_report(const HeadReport& report) {
  json baselines = json::array();
  for (const Baseline& baseline : report.baselines) {
    baselines.push_back({{"name", baseline.name},
                         {"tokens_per_pass", baseline.served.tokens_per_pass},
                         {"by_depth", baseline.served.by_depth}});
  }
  const json data = {{"kind", report.kind},
                     {"target", report.target},
                     {"steps", report.steps},
                     {"parameters", report.parameters},
                     {"training", points_json(report.history.training)},
                     {"held_out", points_json(report.history.held_out)},
                     {"evaluations", points_json(report.history.acceptance)},
                     {"baselines", baselines}};
  return filled_html(kTrainingPage, data.dump());
}

}  // namespace outrider::training
