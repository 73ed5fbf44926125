// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "base/thread_pool.h"
#include "drafters/draft_files.h"
#include "kernels/kernel_table.h"
#include "kv/disk/kv_disk.h"
#include "models/model.h"
#include "outrider/drafter.h"
#include "outrider/result.h"
#include "outrider/speculative_options.h"
#include "tokenizer/tokenizer.h"

namespace outrider {

class Corpus;
class DraftTeam;

// The ranks that draft which belong to a drafter: number `index` among `count` drafters.
struct DraftShare {
  int index = 0;
  int count = 1;
};

// The target and the engine, as a drafter sees them when it is made.
struct DrafterContext {
  const Tokenizer* tokenizer = nullptr;  // the target's
  std::string target_fingerprint = {};   // see draft_heads/head_file.h
  int64_t vocab_size = 0;                // ids the target can choose: [0, vocab_size)
  int64_t layer_count = 0;               // layers of the target
  Model* target = nullptr;               // lends learned drafters its embedding and output head
  // The target runs on another machine: `target` has only its ends, and its states come by absorb().
  bool is_remote = false;
  int64_t context = 0;  // longest sequence in tokens
  int max_batch = 1;
  int prefill_chunk = 256;
  int page_size = 16;
  DType kv_type = DType::kBF16;  // the target's cache
  const KernelTable* kernels = nullptr;
  ThreadPool* pool = nullptr;
  std::optional<DType> weights;
  std::shared_ptr<Drafter> user_drafter;
  // Ranks that draft (drafters/ranked), the drafter's share of them, and the target's files, which they open
  // for its tokenizer; null: drafts are made here.
  std::shared_ptr<DraftTeam> team = {};
  DraftShare share = {};
  std::filesystem::path target_path = {};
  const DraftFiles* files = nullptr;          // null: the method drafts with none
  std::shared_ptr<const Corpus> corpus = {};  // texts of others; null: none
  std::string_view device = {};               // see ModelOptions
  int device_number = 0;
  // Where the target's cache is kept on disk; its identity is the target's. nullopt: nowhere.
  std::optional<KvDisk::Options> disk = {};

  ModelOptions model_options() const {
    return {.kernels = kernels,
            .pool = pool,
            .weights = weights,
            .device = device,
            .device_number = device_number};
  }
  // The head that the options name. Errors: they name none; it is another method's or another target's.
  Result<const HeadFile*> head_for(const SpeculativeOptions& options) const;
  // Keeps the drafter's own cache there, too, where its files can be told from others; null: nowhere.
  std::unique_ptr<KvDisk> open_disk(KvCache& cache, Method method, const ModelFile& file) const;
  // The traits of a drafter of that head which reads so many numbers per token.
  StateTraits states_of(int64_t size) const { return {.size = size, .head = head_fingerprint(*files->head)}; }
};

using DrafterMaker = Result<std::shared_ptr<Drafter>> (*)(const SpeculativeOptions&, const DrafterContext&);

}  // namespace outrider
