// SPDX-License-Identifier: Apache-2.0
#include "training/evaluation/head_report.h"

#include <nlohmann/json.hpp>
#include <string_view>

#include "web/filled_page.h"

namespace outrider {

// The build makes it from report_page/.
extern const std::string_view kTrainingPage;

}  // namespace outrider

namespace outrider::training {
namespace {

using nlohmann::json;

json points(const std::vector<LossPoint>& losses) {
  json list = json::array();
  for (const LossPoint& point : losses) list.push_back({point.step, point.loss});
  return list;
}

}  // namespace

std::string render_head_report(const HeadReport& report) {
  json evaluations = json::array();
  for (const AcceptancePoint& point : report.history.acceptance) {
    evaluations.push_back({{"step", point.step},
                           {"foreseen", point.foreseen},
                           {"chain", point.chain},
                           {"tree", point.tree},
                           {"agreement", point.agreement},
                           {"accepted", point.accepted},
                           {"shared_tree", point.shared_tree}});
  }
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
                     {"training", points(report.history.training)},
                     {"held_out", points(report.history.held_out)},
                     {"evaluations", evaluations},
                     {"baselines", baselines}};
  return filled_page(kTrainingPage, data.dump());
}

}  // namespace outrider::training
