// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "outrider/result.h"
#include "training/job/plan.h"

namespace outrider::training {

// The progress of a job, in the file job.json of its folder. A piece of work that is in the file is complete:
// a job that was killed goes on with the first piece that is not.
class JobState {
 public:
  // Reads the file in `folder`, if there is one. `facts` are the options that must not change, by the names
  // of the options. Errors: the folder holds a job for another model or with other options, or the file is
  // damaged.
  static Result<JobState> open(const std::filesystem::path& folder, const nlohmann::ordered_json& facts);

  bool has_plan() const { return file_.contains("plan"); }
  HeadPlan plan() const;
  JobForecast forecast() const;
  Status keep_plan(const HeadPlan& plan, const JobForecast& forecast);

  bool is_done(const std::string& piece) const { return file_.at("done").contains(piece); }
  // The result that finish() was given for a piece that is done.
  const nlohmann::ordered_json& result(const std::string& piece) const { return file_.at("done").at(piece); }
  Status finish(const std::string& piece, nlohmann::ordered_json result);

 private:
  JobState(std::filesystem::path path, nlohmann::ordered_json file)
      : path_(std::move(path)), file_(std::move(file)) {}
  Status write() const;

  std::filesystem::path path_;
  nlohmann::ordered_json file_;  // "facts", "plan", "forecast", "done"
};

}  // namespace outrider::training
