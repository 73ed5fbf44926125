// SPDX-License-Identifier: Apache-2.0
#include "drafters/drafter_context.h"

#include "config/methods.h"

namespace outrider {

Result<const HeadFile*> DrafterContext::head_for(const SpeculativeOptions& options) const {
  const HeadFile* head = files == nullptr ? nullptr : files->head_file();
  if (head == nullptr) {
    return usage_error("decoding_type " + std::string(method_name(options.decoding_type)) +
                       " expects speculative_model, the directory of its checkpoint; found none");
  }
  OUTRIDER_RETURN_IF_ERROR(check_head(*head, options.decoding_type, target_fingerprint));
  return head;
}

std::unique_ptr<KvDisk> DrafterContext::open_disk(KvCache& cache, Method method,
                                                  const ModelFile& file) const {
  const std::optional<std::string> contents = disk ? file.contents_name() : std::nullopt;
  if (!contents) return nullptr;
  KvDisk::Options options = *disk;
  options.identity += "drafter " + std::string(method_name(method)) + " " +
                      std::string(weights ? dtype_name(*weights) : "as stored") + "\n" + *contents;
  return std::make_unique<KvDisk>(&cache, options);
}

}  // namespace outrider
