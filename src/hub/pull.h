// SPDX-License-Identifier: Apache-2.0
// Brings a model from the Hub to this machine.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "config/environment.h"
#include "hub/remote/choose_files.h"
#include "hub/remote/hub_reference.h"
#include "hub/transfer/file_download.h"
#include "outrider/result.h"

namespace outrider {

// The files of a model at one commit, and where they go.
struct PullPlan {
  HubReference reference;
  std::string base_url;          // of the files at this commit
  std::filesystem::path folder;  // FOLDER/ORG/REPO
  FileChoice choice;

  std::filesystem::path model() const { return folder / choice.main_file; }  // for commands
  int64_t bytes() const;
};

class HubSession {
 public:
  // Errors: an address that is none; a token that would travel unencrypted to another machine; no libcurl.
  static Result<HubSession> open(const HubSite& site, TransferObserver& observer, RetryPolicy retries = {});

  // Asks the Hub what there is and chooses. `folder`: where models are kept.
  Result<PullPlan> plan(const HubReference& reference, const std::filesystem::path& folder,
                        int64_t memory_bytes);
  // Fetches all files of the plan that are not there yet.
  Status fetch(const PullPlan& plan);

 private:
  HubSession(std::string endpoint, std::unique_ptr<HubClient> client, TransferObserver& observer,
             RetryPolicy retries);

  Result<FileChoice> choose(const HubRepository& repository, const PullPlan& plan, int64_t memory_bytes);

  std::string endpoint_;
  std::unique_ptr<HubClient> client_;
  TransferObserver* observer_;
  RetryPolicy retries_;
};

}  // namespace outrider
