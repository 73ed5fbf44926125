// SPDX-License-Identifier: Apache-2.0
#include <malloc.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <functional>
#include <limits>
#include <vector>

#include "training/heads/head_command.h"
#include "training/heads/head_recipes.h"
#include "training/job/job_command.h"
#include "training/lm/lm_command.h"

namespace {

int run(int argc, char** argv) {
  CLI::App app("Trains models and drafters for Outrider.", "outrider-train");
  app.require_subcommand(1);
  std::vector<std::function<outrider::Status()>> commands = {outrider::training::add_job_command(app),
                                                             outrider::training::add_lm_command(app)};
  for (const outrider::training::HeadRecipe& recipe : outrider::training::head_recipes())
    commands.push_back(outrider::training::add_head_command(app, recipe));
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  const std::vector<CLI::App*> all = app.get_subcommands([](CLI::App*) { return true; });
  const auto chosen = std::find(all.begin(), all.end(), app.get_subcommands().front()) - all.begin();
  const outrider::Status status = commands[static_cast<size_t>(chosen)]();
  if (status.ok()) return 0;
  std::fprintf(stderr, "outrider-train: %s\n", status.error().message.c_str());
  return status.error().kind == outrider::ErrorKind::kUsage ? 2 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  // Every step allocates and frees its tensors; returning their pages to the system would cost a fifth of the
  // time in page faults.
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {  // libtorch throws when an operation fails
    std::fprintf(stderr, "outrider-train: %s\n", error.what());
    return 1;
  }
}
