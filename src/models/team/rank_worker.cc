// SPDX-License-Identifier: Apache-2.0
#include "models/team/rank_worker.h"
#include "models/backend/layer_backend.h"

#include <algorithm>
#include <new>

#include "platform/cpu_topology.h"

namespace outrider {
namespace {

template <typename T>
T read(MessageReader& reader) {
  T value{};
  if constexpr (requires { reader.field(value); }) {
    reader.field(value);
  } else {
    each_field(reader, value);
  }
  return value;
}

FeatureTaps read_taps(MessageReader& reader) {
  FeatureTaps taps;
  reader.field(taps.layers);
  reader.field(taps.final_norm);
  return taps;
}

// One rank that serves rank 0.
class RankWorker {
 public:
  explicit RankWorker(Communicator& ranks) : ranks_(ranks) {}

  void serve() {
    for (;;) {
      const std::vector<std::byte> bytes = receive_message(ranks_, 0);
      MessageReader message(bytes);
      const auto command = read<RankCommand>(message);
      if (command == RankCommand::kQuit) return;
      execute(command, message);
    }
  }

 private:
  void execute(RankCommand command, MessageReader& message) {
    switch (command) {
      case RankCommand::kOpen:
        return open(read<RankSettings>(message));
      case RankCommand::kLink:
        return opened_->model().backend().link();
      case RankCommand::kMeasure:
        return opened_->model().measure_into(read<bool>(message) ? &profile_ : nullptr);
      case RankCommand::kCache:
        return answer(opened_->make_cache(read<CacheSettings>(message)));
      case RankCommand::kReserve: {
        const auto rows = read<int64_t>(message);
        return answer(opened_->model().reserve(rows, read<int64_t>(message)));
      }
      case RankCommand::kTap:
        return opened_->tap(read_taps(message));
      case RankCommand::kPass:
        return opened_->run(read<PassOrder>(message));
      case RankCommand::kEmbed:
        return embed(read<std::vector<TokenId>>(message));
      case RankCommand::kOutputHead: {
        const auto rows = read<int64_t>(message);
        return compute_logits(read<std::vector<float>>(message), rows);
      }
      case RankCommand::kClose:
        return opened_.reset();
      case RankCommand::kQuit:
        return;
      case RankCommand::kOpenDrafter:
      case RankCommand::kDraft:
      case RankCommand::kReply:
      case RankCommand::kForget:
        OUTRIDER_CHECK(false);  // they go to ranks that draft
    }
  }

  void open(const RankSettings& settings) {
    if (opened_)
      return answer(usage_error("expected one model at a time, found a second; use no ranks here"));
    Result<std::unique_ptr<OpenedPart>> opened = OpenedPart::open(settings, ranks_);
    if (!opened.ok()) return answer(opened.error());
    opened_ = std::move(opened).value();
    answer({});
  }

  void answer(const Status& status) {
    RankAnswer answer;
    if (!status.ok()) answer = {.kind = status.error().kind, .error = status.error().message};
    if (opened_) answer.weight_bytes = opened_->model().weight_bytes();
    MessageWriter message;
    each_field(message, std::as_const(answer));
    send_message(ranks_, message, 0);
  }

  void embed(const std::vector<TokenId>& tokens) {
    if (!opened_->part().is_first_stage()) return;
    Model& model = opened_->model();
    BackendRows embedded(model.backend());
    embedded.reserve(std::ssize(tokens), model.config().hidden_size);
    model.embed_tokens(tokens, embedded.data());
  }

  void compute_logits(const std::vector<float>& states, int64_t rows) {
    const ModelPart& part = opened_->part();
    if (!part.is_last_stage()) return;
    Model& model = opened_->model();
    BackendRows inputs(model.backend());
    inputs.reserve(rows, model.config().hidden_size);
    model.backend().write(states, inputs.data());
    const FloatAddress logits = model.output_head(inputs.data(), rows);
    if (part.stage_count == 1 || part.shard.index != 0) return;
    ranks_.send(std::as_bytes(model.backend().read(logits, rows * model.config().vocab_size)), 0);
  }

  Communicator& ranks_;
  PassProfile profile_;  // which nobody reads, beside the first rank's
  std::unique_ptr<OpenedPart> opened_;
};

}  // namespace

int threads_of_rank(const Communicator& ranks) {
  const std::vector<int> allowed = allowed_cpus();
  const int workers = best_worker_count(places_of(allowed));
  const bool is_bound = allowed.size() < std::thread::hardware_concurrency();
  return is_bound ? workers : std::max(1, workers / ranks.neighbours());
}

OpenedPart::OpenedPart(const RankSettings& settings, Communicator& ranks)
    : pool_(settings.threads == 0 ? threads_of_rank(ranks) : settings.threads),
      part_(part_of(ranks, settings.shards, settings.stages)) {}

Result<std::unique_ptr<OpenedPart>> OpenedPart::open(const RankSettings& settings, Communicator& ranks) {
  OUTRIDER_TRY(const ModelFile file, open_model(settings.model));
  OUTRIDER_TRY(const KernelTable* kernels, select_kernels(settings.kernels));
  std::unique_ptr<OpenedPart> opened(new OpenedPart(settings, ranks));
  OUTRIDER_TRY(
      opened->model_,
      Model::load(file, {.kernels = kernels,
                         .pool = &opened->pool_,
                         .weights = settings.converts ? std::optional(settings.weights) : std::nullopt,
                         .context = settings.context,
                         .packed_cache = settings.packed_cache,
                         .part = opened->part_,
                         .device = settings.device,
                         .device_number = ranks.place()}));
  opened->pass_.emplace(*opened->model_, opened->part_, settings.micro_rows);
  return opened;
}

Status OpenedPart::make_cache(const CacheSettings& settings) {
  KvShape shape = model_->kv_shape();
  shape.page_size = settings.page_size;
  shape.type = settings.type;
  shape.page_count = settings.pages;
  try {
    cache_ = std::make_unique<KvCache>(shape, KvOptions(), model_->make_storage(shape));
  } catch (const std::bad_alloc&) {
    return resource_error("out of memory for the KV cache of rank " + std::to_string(part_.ranks->rank()) +
                          "; lower --ctx, --max-batch or --kv-pages");
  }
  return {};
}

void OpenedPart::run(const PassOrder& order) {
  for (const KvMove& move : order.moves) cache_->repeat(move);
  pass_->run(order.batch, *cache_, order.is_subset ? &order.layers : nullptr);
}

void serve_rank(Communicator& ranks) {
  try {
    RankWorker(ranks).serve();
  } catch (...) {
    ranks.fail();
    throw;
  }
}

}  // namespace outrider
