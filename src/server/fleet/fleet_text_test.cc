// SPDX-License-Identifier: Apache-2.0
#include "server/fleet/fleet_text.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace outrider {
namespace {

TEST(MergedMetrics, AFamilyOccursOnce) {
  const std::array<std::string, 3> texts = {
      "# HELP a x\n# TYPE a gauge\na{m=\"1\"} 1\n",
      "# HELP b y\n# TYPE b counter\nb_total{m=\"2\"} 2\n# HELP a x\n# TYPE a "
      "gauge\na{m=\"2\"} 3\n",
      "# HELP b y\n# TYPE b counter\nb_total{m=\"3\"} 4\n"};
  EXPECT_EQ(merged_metrics(texts),
            "# HELP a x\n# TYPE a gauge\na{m=\"1\"} 1\na{m=\"2\"} 3\n"
            "# HELP b y\n# TYPE b counter\nb_total{m=\"2\"} 2\nb_total{m=\"3\"} 4\n");
  EXPECT_EQ(merged_metrics({}), "");
  const std::array<std::string, 1> cut = {"# HELP a x\n# TYPE a gauge\na 1"};
  EXPECT_EQ(merged_metrics(cut), cut.front());
}

}  // namespace
}  // namespace outrider
