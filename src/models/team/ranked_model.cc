// SPDX-License-Identifier: Apache-2.0
#include "models/team/ranked_model.h"

#include <exception>
#include <string>
#include <thread>
#include <utility>

#include "models/team/rank_worker.h"
#include "ranks/thread_ranks.h"

namespace outrider {
namespace {

RankSettings settings_for(const ModelFile& file, const ModelOptions& options, const RankOptions& ranks) {
  return {.model = file.path.string(),
          .kernels = std::string(options.kernels->name),
          .packed_cache = options.packed_cache.string(),
          .device = std::string(options.device),
          .converts = options.weights.has_value(),
          .weights = options.weights.value_or(DType::kF32),
          .context = options.context,
          .threads = ranks.threads,
          .shards = ranks.shards,
          .stages = ranks.stages,
          .micro_rows = ranks.micro_rows};
}

int64_t count_parameters(const ModelFile& file) {
  int64_t count = 0;
  for (const auto& [name, tensor] : file.tensors) count += tensor.rows() * tensor.cols();
  return count;
}

}  // namespace

class RankedModel::Threads {
 public:
  explicit Threads(int size) : job_(size) {
    for (int rank = 1; rank < size; ++rank) {
      threads_.emplace_back([this, rank] {
        try {
          serve_rank(job_.of(rank));
        } catch (const std::exception&) {  // rank 0 gets a RankFailure
        }
      });
    }
  }

  // Rank 0 has told the others to quit, or they have failed.
  ~Threads() {
    for (std::thread& thread : threads_) thread.join();
  }

  Communicator& root() { return job_.of(0); }

 private:
  ThreadRanks job_;
  std::vector<std::thread> threads_;
};

RankedModel::RankedModel(std::unique_ptr<Threads> threads, Communicator& ranks)
    : threads_(std::move(threads)), ranks_(ranks) {}

RankedModel::~RankedModel() {
  if (!threads_ && !own_) return;  // no rank has opened it, or the job has another model open
  try {
    tell(MessageWriter(threads_ ? RankCommand::kQuit : RankCommand::kClose));
  } catch (const RankFailure&) {  // the others have ended
  }
}

void end_job(Communicator& ranks) {
  for (int rank = 1; rank < ranks.size(); ++rank) {
    try {
      send_message(ranks, MessageWriter(RankCommand::kQuit), rank);
    } catch (const RankFailure&) {  // it has ended by itself
    }
  }
}

Result<std::unique_ptr<Model>> RankedModel::load(const ModelFile& file, ModelOptions options,
                                                 const RankOptions& ranks) {
  const int size = ranks.shards * ranks.stages;
  if (ranks.joined != nullptr && ranks.joined->size() != size) {
    return usage_error("expected a job of " + std::to_string(size) +
                       " ranks, tensor parallel times pipeline parallel, found " +
                       std::to_string(ranks.joined->size()) + "; start it with mpirun -n " +
                       std::to_string(size));
  }
  auto threads = ranks.joined == nullptr ? std::make_unique<Threads>(size) : nullptr;
  Communicator& root = threads ? threads->root() : *ranks.joined;
  std::unique_ptr<RankedModel> model(new RankedModel(std::move(threads), root));
  OUTRIDER_RETURN_IF_ERROR(model->open(file, options, ranks));
  return std::unique_ptr<Model>(std::move(model));
}

template <typename Call>
auto RankedModel::together(Call&& call) const {
  try {
    return call();
  } catch (...) {
    ranks_.fail();
    throw;
  }
}

Status RankedModel::open(const ModelFile& file, ModelOptions options, const RankOptions& settings) {
  options.part = part_of(ranks_, settings.shards, settings.stages);
  options.device_number = ranks_.place();
  return together([&]() -> Status {
    MessageWriter message(RankCommand::kOpen);
    const RankSettings told = settings_for(file, options, settings);
    each_field(message, told);
    tell(message);
    Result<std::unique_ptr<Model>> own = Model::load(file, options);
    const Status others = collect();
    if (!own.ok()) return own.error();
    OUTRIDER_RETURN_IF_ERROR(others);
    own_ = std::move(own).value();
    tell(MessageWriter(RankCommand::kLink));
    own_->backend().link();
    pass_.emplace(*own_, options.part, settings.micro_rows);
    parameter_count_ = count_parameters(file);
    weight_bytes_ += own_->weight_bytes();
    return {};
  });
}

void RankedModel::tell(const MessageWriter& message) const {
  for (int rank = 1; rank < ranks_.size(); ++rank) send_message(ranks_, message, rank);
}

Status RankedModel::collect() {
  Status status;
  weight_bytes_ = own_ ? own_->weight_bytes() : 0;
  for (int rank = 1; rank < ranks_.size(); ++rank) {
    const std::vector<std::byte> bytes = receive_message(ranks_, rank);
    MessageReader message(bytes);
    RankAnswer answer;
    each_field(message, answer);
    weight_bytes_ += answer.weight_bytes;
    if (status.ok() && !answer.error.empty())
      status = Error{answer.kind, "rank " + std::to_string(rank) + ": " + answer.error};
  }
  return status;
}

Status RankedModel::share_cache(KvCache& cache) {
  cache.record_moves(&moves_);
  return together([&] {
    MessageWriter message(RankCommand::kCache);
    message.field(CacheSettings{cache.shape().page_size, cache.shape().type, cache.shape().page_count});
    tell(message);
    return collect();
  });
}

Status RankedModel::reserve(int64_t rows, int64_t logits_rows) {
  return together([&]() -> Status {
    MessageWriter message(RankCommand::kReserve);
    message.field(rows);
    message.field(logits_rows);
    tell(message);
    const Status own = own_->reserve(rows, logits_rows);
    OUTRIDER_RETURN_IF_ERROR(collect());
    return own;
  });
}

void RankedModel::run(PassOrder order, KvCache& cache) {
  together([&] {
    order.moves = std::exchange(moves_, {});
    MessageWriter message(RankCommand::kPass);
    each_field(message, std::as_const(order));
    tell(message);
    pass_->run(order.batch, cache, order.is_subset ? &order.layers : nullptr);
  });
}

std::span<const float> RankedModel::forward(const ForwardBatch& batch, KvCache& cache) {
  run({.batch = batch}, cache);
  return pass_->logits();
}

SubsetOutput RankedModel::forward_subset(const ForwardBatch& batch, KvCache& cache,
                                         const LayerSubset& layers) {
  run({.batch = batch, .is_subset = true, .layers = layers}, cache);
  return {.logits = pass_->logits(), .states = pass_->subset_states()};
}

void RankedModel::tap(FeatureTaps taps) {
  taps_ = std::move(taps);
  together([&] {
    MessageWriter message(RankCommand::kTap);
    message.field(taps_.layers);
    message.field(taps_.final_norm);
    tell(message);
    pass_->tap(taps_);
  });
}

// All ranks order the operations of a pass in one way: as a list, or one by one.
void RankedModel::measure_into(PassProfile* profile) {
  together([&] {
    MessageWriter message(RankCommand::kMeasure);
    message.field(profile != nullptr);
    tell(message);
    own_->measure_into(profile);
  });
}

void RankedModel::embed_tokens(std::span<const TokenId> tokens, FloatAddress out) {
  together([&] {
    MessageWriter message(RankCommand::kEmbed);
    message.field(std::vector<TokenId>(tokens.begin(), tokens.end()));
    tell(message);
    own_->embed_tokens(tokens, out);
  });
}

// Numbers that another rank has computed, in the memory of this rank's backend.
FloatAddress RankedModel::place(std::span<const float> numbers, std::optional<BackendRows>& rows) {
  if (!rows) rows.emplace(backend());
  rows->reserve(1, std::ssize(numbers));
  backend().write(numbers, rows->data());
  return rows->data();
}

FloatAddress RankedModel::output_head(FloatAddress states, int64_t rows) {
  return together([&] {
    MessageWriter message(RankCommand::kOutputHead);
    message.field(rows);
    const std::span<const float> numbers = backend().read(states, rows * config().hidden_size);
    message.field(std::vector<float>(numbers.begin(), numbers.end()));
    tell(message);
    const ModelPart part = pass_->part();
    if (part.stage_count == 1) return own_->output_head(states, rows);
    head_logits_.resize(static_cast<size_t>(rows * config().vocab_size));
    ranks_.receive(std::as_writable_bytes(std::span(head_logits_)), part.rank_of(part.stage_count - 1, 0));
    return place(head_logits_, logits_rows_);
  });
}

}  // namespace outrider
