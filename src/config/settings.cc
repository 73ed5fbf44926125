// SPDX-License-Identifier: Apache-2.0
#include "config/settings.h"

namespace outrider {

Settings default_settings(Command command) {
  Settings settings;
  settings.command = command;
  SamplingParams& sampling = settings.request.sampling;
  if (command == Command::kServe ||
      command == Command::kBatch) {  // llama-server's, with which small models write sensibly
    sampling.temperature = 0.8;
    sampling.top_k = 40;
    sampling.min_p = 0.05;
    settings.engine.max_batch = 32;
  } else if (command == Command::kVerifyLossless) {  // of the sampled half of the proof
    sampling.temperature = 0.7;
    sampling.top_p = 0.9;
  } else if (command == Command::kChat) {
    settings.request.max_tokens = 512;
  }
  return settings;
}

}  // namespace outrider
