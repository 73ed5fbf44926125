// SPDX-License-Identifier: Apache-2.0
#include "training/job/job_state.h"

#include <fmt/format.h>

#include <fstream>

#include "platform/durable_file.h"

namespace outrider::training {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

// Error: the first option that differs from the job's.
Status check_facts(const fs::path& folder, const ordered_json& found, const ordered_json& wanted) {
  for (const auto& [name, value] : wanted.items()) {
    const ordered_json there = found.contains(name) ? found.at(name) : ordered_json();
    if (there == value) continue;
    return usage_error(
        fmt::format("{} holds a job with {} {}, found {} {} now; give the same options to go on with it, or "
                    "another --out",
                    folder.string(), name, there.dump(), name, value.dump()));
  }
  return {};
}

bool is_job(const ordered_json& file) {
  return file.is_object() && file.contains("facts") && file.contains("done") &&
         file.at("facts").is_object() && file.at("done").is_object();
}

}  // namespace

Result<JobState> JobState::open(const fs::path& folder, const ordered_json& facts) {
  const fs::path path = folder / "job.json";
  std::ifstream in(path);
  if (!in) return JobState(path, {{"facts", facts}, {"done", ordered_json::object()}});
  const ordered_json file = ordered_json::parse(in, nullptr, /*allow_exceptions=*/false);
  if (!is_job(file)) return input_error(path.string() + ": not the state of a job; remove the folder");
  OUTRIDER_RETURN_IF_ERROR(check_facts(folder, file.at("facts"), facts));
  return JobState(path, file);
}

HeadPlan JobState::plan() const {
  const ordered_json& plan = file_.at("plan");
  return {.prompts = plan.at("prompts"),
          .steps = plan.at("steps"),
          .evaluate_every = plan.at("evaluate_every"),
          .checkpoint_every = plan.at("checkpoint_every")};
}

JobForecast JobState::forecast() const {
  const ordered_json& kept = file_.at("forecast");
  return {.text_s = kept.at("text_s"),
          .training_s = kept.at("training_s"),
          .measuring_s = kept.at("measuring_s"),
          .proof_s = kept.at("proof_s"),
          .trained_tokens = kept.at("trained_tokens"),
          .passes = kept.at("passes"),
          .lengths = {.chain = kept.at("chain"), .tree = kept.at("tree")},
          .speedup = kept.at("speedup")};
}

Status JobState::keep_plan(const HeadPlan& plan, const JobForecast& forecast) {
  file_["plan"] = {{"prompts", plan.prompts},
                   {"steps", plan.steps},
                   {"evaluate_every", plan.evaluate_every},
                   {"checkpoint_every", plan.checkpoint_every}};
  file_["forecast"] = {{"text_s", forecast.text_s},
                       {"training_s", forecast.training_s},
                       {"measuring_s", forecast.measuring_s},
                       {"proof_s", forecast.proof_s},
                       {"trained_tokens", forecast.trained_tokens},
                       {"passes", forecast.passes},
                       {"chain", forecast.lengths.chain},
                       {"tree", forecast.lengths.tree},
                       {"speedup", forecast.speedup}};
  return write();
}

Status JobState::finish(const std::string& piece, ordered_json result) {
  file_["done"][piece] = std::move(result);
  return write();
}

Status JobState::write() const {
  OUTRIDER_RETURN_IF_ERROR(make_directories(path_.parent_path()));
  return write_durably(path_, file_.dump(1) + "\n");
}

}  // namespace outrider::training
