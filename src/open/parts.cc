// SPDX-License-Identifier: Apache-2.0
#include "open/parts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "draft_heads/head_fit.h"
#include "drafters/ranked/draft_team.h"
#include "drafters/registry.h"
#include "engine/calibration.h"
#include "engine/request_checks.h"
#include "engine/storage_type.h"
#include "formats/model_file.h"
#include "kernels/kernel_table.h"
#include "models/backend/device/row_limits.h"
#include "models/team/ranked_model.h"
#include "open/corpus_files.h"
#include "open/device_choice.h"
#include "open/resolved.h"
#include "open/thinking_tokens.h"
#include "platform/cpu_topology.h"
#include "platform/machine_memory.h"
#include "ranks/rank_group.h"

namespace outrider {
namespace {

// The type that holds most bytes of the file.
DType main_type(const ModelFile& file) {
  std::array<int64_t, kDTypeCount> bytes{};
  for (const auto& [name, tensor] : file.tensors) bytes[static_cast<size_t>(tensor.dtype)] += tensor.bytes();
  return static_cast<DType>(std::max_element(bytes.begin(), bytes.end()) - bytes.begin());
}

int ranks_of_machine(const EngineOptions& options) {
  return options.ranks ? options.ranks->neighbours() : all_rank_count(options);
}

// The processor of every worker; an empty list leaves workers where the system puts them. Under kAuto workers
// are not pinned when threads are fewer than processors, because two engines would choose the same ones. They
// are not pinned on a single NUMA node, where pinning gains nothing and costs time when other programs run.
Result<std::vector<int>> pinned_cpus(const EngineOptions& options) {
  if (options.pinning == ThreadPinning::kOff) return std::vector<int>();
  const std::vector<int> allowed = allowed_cpus();
  const auto threads = static_cast<size_t>(options.threads);
  const std::vector<CpuPlace> places = places_of(allowed);
  if (options.pinning == ThreadPinning::kAuto && (threads != allowed.size() || node_count(places) < 2)) {
    return std::vector<int>();
  }
  if (threads > allowed.size()) {
    return usage_error("expected at most " + std::to_string(allowed.size()) +
                       " threads to pin, one for each processor this process may use, found " +
                       std::to_string(threads) + "; lower --threads or leave out --pin on");
  }
  return cpus_for_workers(places, options.threads);
}

// The memory in use, without any that was freed.
int64_t settled_memory() {
  give_freed_memory_back();
  return resident_memory();
}

// Memory that is in use, and will be when all buffers have been written.
class MemoryCount {
 public:
  int64_t bytes() const { return begin_ + Buffer::owned_bytes() - owned_; }

 private:
  int64_t begin_ = settled_memory();
  int64_t owned_ = Buffer::owned_bytes();
};

// All but the weights of layers.
int64_t rest_of(const MemoryCount& memory) {
  constexpr int64_t kLists = int64_t{8} << 20;  // lists, texts and stacks
  return memory.bytes() + kLists;
}

// Each rank of the machine has as much. Mapped weights count as available, but passes need them. Under a
// limit so do the weights that are read.
int64_t free_memory(const EngineOptions& options, const Model& target, const MemoryCount& memory) {
  int64_t bytes = available_memory();
  if (target.maps_weights()) bytes -= target.weight_bytes();
  if (const auto layers = target.streaming())
    bytes = std::min(bytes, options.memory_limit - rest_of(memory) - layers->kept_bytes);
  return std::max<int64_t>(bytes, 0) / ranks_of_machine(options);
}

// Some for each sequence of the batch, within a twelfth of the free memory. Under --memory all of that is for
// layers.
int64_t checkpoint_count(const EngineOptions& options, const StateShape& states, int64_t free_bytes) {
  constexpr int64_t kPerSequence = 4;
  if (states.layer_count == 0 || options.memory_limit > 0) return 0;
  return std::min(kPerSequence * options.max_batch, free_bytes / 12 / states.bytes_per_sequence());
}

// The cache has pages for max_batch sequences of full context and their trees, within a third of the free
// memory, but never fewer than one sequence needs.
Result<KvShape> cache_shape(const EngineOptions& options, Model& target, const MemoryCount& memory) {
  KvShape shape = target.kv_shape();
  shape.page_size = options.page_size;
  shape.type = storage_type(options.kv_cache_type);
  shape.states.sequence_count = options.max_batch;
  const int64_t free_bytes = target.backend().free_bytes().value_or(free_memory(options, target, memory));
  shape.states.checkpoint_count = checkpoint_count(options, shape.states, free_bytes);
  const int64_t longest =
      options.context + std::max(limits_of(options.speculation).max_nodes, options.offered_nodes) + 1;
  const int64_t pages_per_sequence = (longest + options.page_size - 1) / options.page_size;
  if (options.kv_pages != 0) {
    if (options.kv_pages < pages_per_sequence) {
      return usage_error("kv pages must be at least " + std::to_string(pages_per_sequence) +
                         " for a context of " + std::to_string(options.context) + " tokens, found " +
                         std::to_string(options.kv_pages) + "; raise it or lower --ctx");
    }
    shape.page_count = options.kv_pages;
    return shape;
  }
  const int64_t for_states =
      (options.max_batch + shape.states.checkpoint_count) * shape.states.bytes_per_sequence();
  const int64_t for_pages = free_bytes / 3 - for_states;
  const int64_t page_bytes = std::max<int64_t>(shape.page_bytes(), 1);  // 0: no layer has attention
  shape.page_count =
      std::clamp(for_pages / page_bytes, pages_per_sequence, pages_per_sequence * options.max_batch);
  return shape;
}

EngineInfo target_info(const EngineParts& parts, const ModelFile& file, DType weights) {
  return {.model_path = file.path.string(),
          .family = file.config.family,
          .device = std::string(device_name(parts.options.device)),
          .kernels = {},
          .weights = std::string(dtype_name(weights)),
          .kv_cache_type = std::string(dtype_name(storage_type(parts.options.kv_cache_type))),
          .drafter = {},
          .sources = {},
          .threads = parts.options.threads,
          .is_pinned = parts.pool->is_pinned(),
          .parameters = parts.target->parameter_count(),
          .weight_bytes = parts.target->weight_bytes(),
          .maps_weights = parts.target->maps_weights(),
          .context = parts.options.context,
          .vocab_size = parts.vocab_size,
          .load_ms = 0};
}

Status reserve_passes(const EngineParts& parts) {
  const int64_t rows = batch_limits(parts).rows;
  return parts.target->reserve(rows, std::min(rows, max_logits(parts) + kMaxPromptLogits));
}

Status open_text(EngineParts& parts, const ModelFile& file) {
  OUTRIDER_TRY(parts.tokenizer, Tokenizer::create(file.tokenizer));
  parts.unused_tokens = parts.tokenizer->unused();
  parts.chat = chat_format_of(file);
  return {};
}

// The ranks [first, first + count) of the job and rank 0; null where ranks are threads.
std::shared_ptr<Communicator> ranks_of_job(const EngineOptions& options, int first, int count) {
  if (!options.ranks) return nullptr;
  std::vector<int> members = {0};
  for (int rank = std::max(first, 1); rank < first + count; ++rank) members.push_back(rank);
  return std::make_shared<RankGroup>(options.ranks, std::move(members));
}

Result<std::unique_ptr<Model>> load_target(EngineParts& parts, const ModelFile& file,
                                           const ModelOptions& model_options, int rank_threads) {
  const EngineOptions& options = parts.options;
  if (target_rank_count(options) == 1) return Model::load(file, model_options);
  parts.target_ranks = ranks_of_job(options, 0, target_rank_count(options));
  return RankedModel::load(file, model_options,
                           {.joined = parts.target_ranks.get(),
                            .shards = options.tensor_parallel,
                            .stages = options.pipeline_parallel,
                            .threads = rank_threads});
}

// Null: drafts are made here.
std::shared_ptr<DraftTeam> make_draft_team(const EngineOptions& options, int rank_threads) {
  if (options.draft_ranks == 0 || options.speculation.decoding_type == Method::kNone) return nullptr;
  if (!options.ranks)
    return DraftTeam::of_threads(options.draft_ranks, rank_threads, target_rank_count(options));
  return std::make_shared<DraftTeam>(ranks_of_job(options, target_rank_count(options), options.draft_ranks),
                                     rank_threads);
}

// How the target of an engine is loaded.
struct TargetLoad {
  const KernelTable* kernels = nullptr;
  int rank_threads = 1;
  bool plans_only = false;  // see ModelOptions
};

Status open_workers(EngineParts& parts, int rank_threads) {
  OUTRIDER_TRY(std::vector<int> cpus, pinned_cpus(parts.options));
  parts.draft_team = make_draft_team(parts.options, rank_threads);
  parts.pool = std::make_unique<ThreadPool>(parts.options.threads, std::move(cpus));
  return {};
}

// All that the bits of the target's pages depend on, besides the tokens and the cache's shape. Empty: the
// model was written only just now.
std::string cache_identity(const EngineParts& parts, const ModelFile& target) {
  const EngineOptions& options = parts.options;
  const std::optional<std::string> contents = target.contents_name();
  if (!contents) return {};
  // Some models have other frequencies where texts may be long.
  const bool is_long = std::ranges::any_of(target.config.ropes, [&](const RopeTraits& rope) {
    return rope.scaling.kind == RopeScalingKind::kLongRope && options.context > rope.scaling.original_context;
  });
  const bool is_converted = options.weights != WeightPrecision::kAuto;
  return "outrider " OUTRIDER_VERSION "\n" + parts.info.device + " " + parts.info.kernels + "\n" +
         parts.info.weights + (is_converted ? " converted" : " as stored") + (is_long ? " long\n" : "\n") +
         *contents;
}

Status open_target(EngineParts& parts, const ModelFile& file, const TargetLoad& load) {
  const std::optional<DType> weights = storage_type(parts.options.weights);
  const ModelOptions model_options{.kernels = load.kernels,
                                   .pool = parts.pool.get(),
                                   .weights = weights,
                                   .context = parts.options.context,
                                   .packed_cache = parts.options.packed_cache,
                                   .streams_layers = parts.options.memory_limit > 0,
                                   .plans_only = load.plans_only,
                                   .device = backend_name(parts.options.device),
                                   .placement = asked_placement(parts.options, file.config)};
  OUTRIDER_TRY(parts.target, load_target(parts, file, model_options, load.rank_threads));
  // A step should neither allocate nor run out of memory.
  OUTRIDER_RETURN_IF_ERROR(reserve_passes(parts));
  parts.vocab_size = std::min<int64_t>(parts.target->config().vocab_size, parts.tokenizer->vocab_size());
  parts.info = target_info(parts, file, weights.value_or(main_type(file)));
  parts.info.kernels = std::string(load.kernels->name);
  if (parts.options.device != ComputeDevice::kCpu) {
    parts.info.host_layers = model_options.placement.host_layers;
    parts.info.host_experts = model_options.placement.host_experts;
  }
  parts.cache_identity = cache_identity(parts, file);
  return {};
}

Status check_taps(const FeatureTaps& taps, int64_t layer_count) {
  for (size_t i = 0; i < taps.layers.size(); ++i) {
    const int64_t layer = taps.layers[i];
    if (layer >= 0 && layer <= layer_count && (i == 0 || layer > taps.layers[i - 1])) continue;
    return input_error("the drafter learns from layer " + std::to_string(layer) +
                       " of the target; expected rising layers from 0 to " + std::to_string(layer_count));
  }
  return {};
}

// Whether most of the file are numbers of another format's quantisation, which are made when they are read.
bool is_made_of_codes(const ModelFile& file) {
  int64_t made = 0, stored = 0;
  for (const auto& [name, tensor] : file.tensors) (tensor.data == nullptr ? made : stored) += tensor.bytes();
  return made > stored;
}

// The type of the drafter's matrices; nullopt: as stored. Every draft is verified, so a head may be rounded.
// Beside a quantised target one that is stored in 16 or 32 bits is packed in 8, which is read in half the
// time. So is one of codes that no type of ours holds exactly.
std::optional<DType> drafter_weights(const EngineParts& parts, const OpenedFiles& files) {
  if (parts.options.weights != WeightPrecision::kAuto) return storage_type(parts.options.weights);
  const HeadFile* head = files.drafts.head_file();
  const auto is_quantised = [](const ModelFile& model) { return block_elements(main_type(model)) > 1; };
  if (head == nullptr || is_quantised(head->file)) return std::nullopt;
  if (is_quantised(files.target) || is_made_of_codes(head->file)) return DType::kQ8_0;
  return std::nullopt;
}

// Where the caches are kept; nullopt: nowhere.
std::optional<KvDisk::Options> disk_options(const EngineParts& parts) {
  const EngineOptions& options = parts.options;
  if (options.prompt_cache.empty() || parts.cache_identity.empty()) return std::nullopt;
  return KvDisk::Options{.folder = options.prompt_cache,
                         .max_bytes = options.prompt_cache_size,
                         .identity = parts.cache_identity};
}

void open_disk(EngineParts& parts) {
  if (const auto options = disk_options(parts)) {
    parts.disk = std::make_unique<KvDisk>(parts.cache.get(), *options);
  } else if (!parts.options.prompt_cache.empty()) {
    log_info("the model was written only just now; the prompt cache is used from the next start on");
  }
}

Status open_drafter(EngineParts& parts, const OpenedFiles& files, const KernelTable* kernels) {
  const DrafterContext context{.tokenizer = parts.tokenizer.get(),
                               .target_fingerprint = target_fingerprint(files.target),
                               .vocab_size = parts.vocab_size,
                               .layer_count = parts.target->config().layer_count,
                               .target = parts.target.get(),
                               .context = parts.options.context,
                               .max_batch = parts.options.max_batch,
                               .prefill_chunk = parts.options.prefill_chunk,
                               .page_size = parts.options.page_size,
                               .kv_type = storage_type(parts.options.kv_cache_type),
                               .kernels = kernels,
                               .pool = parts.pool.get(),
                               .weights = drafter_weights(parts, files),
                               .user_drafter = parts.options.user_drafter,
                               .team = parts.draft_team,
                               .target_path = files.target.path,
                               .files = &files.drafts,
                               .corpus = parts.corpus,
                               .device = backend_name(parts.options.device),
                               .disk = disk_options(parts)};
  OUTRIDER_TRY(parts.drafter, make_drafter(parts.options.speculation, context));
  const DrafterTraits& traits = parts.drafter->traits();
  if (traits.features.count() > 0) {
    OUTRIDER_RETURN_IF_ERROR(check_taps(traits.features, parts.target->config().layer_count));
    parts.target->tap(traits.features);
    OUTRIDER_RETURN_IF_ERROR(reserve_passes(parts));
  }
  parts.info.drafter = traits.name;
  parts.info.sources = traits.sources.empty() ? std::vector{traits.name} : traits.sources;
  return {};
}

// The cache comes last, because it takes a share of what all else leaves.
Status open_cache(EngineParts& parts, const MemoryCount& memory) {
  OUTRIDER_TRY(const KvShape shape, cache_shape(parts.options, *parts.target, memory));
  parts.cache = std::make_unique<KvCache>(shape, KvOptions(), parts.target->make_storage(shape));
  parts.options.kv_pages = shape.page_count;
  return parts.target->share_cache(*parts.cache);
}

// Host steps may choose their tokens on the target's device.
void open_pass_choices(EngineParts& parts) {
  if (parts.options.device == ComputeDevice::kCpu) return;
  parts.pass_choices = PassChoices::make(
      *parts.target,
      {.max_rows = kMostChosenRows, .vocab_size = parts.vocab_size, .unused = parts.unused_tokens});
}

// Says why the target's device gets the operations of passes one by one, where it does.
void tell_of_passes(const EngineParts& parts) {
  const std::string_view problem = parts.target->backend().repeat_problem();
  if (parts.options.device == ComputeDevice::kCpu || problem.empty()) return;
  log_info("the device gets the operations of each pass one by one, because the target has " +
           std::string(problem));
}

// The loop of steps on the target's device, or the reason why there is none.
void open_device_loop(EngineParts& parts) {
  const EngineOptions& options = parts.options;
  if (options.device == ComputeDevice::kCpu || options.device_steps == 0) return;
  DeviceLoop::Shape shape{.max_rows = std::min<int64_t>(options.max_batch, kMostListedRows),
                          .max_steps = options.device_steps,
                          .max_length = options.context,
                          .vocab_size = parts.vocab_size,
                          .unused = parts.unused_tokens};
  auto loop = DeviceLoop::make(*parts.target, *parts.cache, shape);
  const DraftLimits limits = limits_of(options.speculation);
  DeviceDraft* const draft = parts.drafter->device_draft();
  const int levels =
      draft == nullptr ? 0 : std::min({limits.max_draft_len, limits.max_nodes, draft->max_levels()});
  const int nodes = options.speculation.tree.kind == TreeKind::kChain ? levels : limits.max_nodes;
  if (loop.ok() && draft != nullptr && nodes < kMostListedRows) {
    shape.max_levels = levels;
    shape.max_nodes = nodes;
    shape.max_rows = std::min(int64_t{options.max_batch} * (nodes + 1), kMostListedRows);
    auto drafting = DeviceLoop::make(*parts.target, *parts.cache, shape, draft);
    if (!drafting.ok()) log_info("steps with drafts wait for this machine: " + drafting.error().message);
    if (drafting.ok()) loop = std::move(drafting);
  }
  if (loop.ok()) {
    parts.device_loop = std::move(*loop);
    parts.info.device_steps = options.device_steps;
    return;
  }
  parts.info.device_steps_reason = loop.error().message;
  log_info("the device waits after every pass: " + loop.error().message +
           "; --device-steps 0 hides this line");
}

std::string megabytes(double bytes) { return std::to_string(std::llround(bytes / 1e6)) + " MB"; }

// Gives the layers of the target what the limit leaves to them.
Status keep_layers(EngineParts& parts, const MemoryCount& memory) {
  if (parts.options.memory_limit == 0) return {};
  const int64_t rest = rest_of(memory);
  if (const Status kept = parts.target->keep_layers(parts.options.memory_limit - rest); !kept.ok()) {
    return Error{kept.error().kind, kept.error().message + "; all else takes " +
                                        megabytes(static_cast<double>(rest)) +
                                        "; raise --memory, or lower --ctx or --max-batch"};
  }
  const std::optional<LayerStreaming> streaming = parts.target->streaming();
  if (!streaming || streaming->bytes == 0) return {};
  parts.info.streamed_bytes = streaming->bytes;
  parts.info.read_rate = streaming->rate;
  const auto bytes = static_cast<double>(streaming->bytes);
  log_info("a pass over one token reads " + megabytes(bytes) + " of weights at " +
           megabytes(streaming->rate) + " a second, which takes " +
           std::to_string(std::llround(1e3 * bytes / streaming->rate)) + " ms");
  return {};
}

// Closes a drafter that cannot be used. Under a limit the target is opened again, because its buffers have
// grown for that drafter.
Status close_drafter(EngineParts& parts, const OpenedFiles& files, const TargetLoad& load,
                     MemoryCount& memory) {
  parts.drafter.reset();
  OUTRIDER_TRY(parts.options.speculation, resolve_speculation(files.names.options.speculation, files.drafts));
  if (parts.options.memory_limit == 0) {
    parts.target->tap({});
    return {};
  }
  parts.cache.reset();
  parts.target.reset();
  parts.options.kv_pages = files.names.options.kv_pages;
  memory = MemoryCount();
  return open_target(parts, files.target, load);
}

// Opens the drafter, and gives the layers of the target what the limit leaves to them.
Status open_drafter_and_layers(EngineParts& parts, OpenedFiles& files, const TargetLoad& load,
                               MemoryCount& memory) {
  for (;;) {
    Status opened = open_drafter(parts, files, load.kernels);
    if (opened.ok()) {
      OUTRIDER_RETURN_IF_ERROR(open_cache(parts, memory));
      opened = keep_layers(parts, memory);
    }
    if (opened.ok() || !take_next_drafter(files, opened.error().message)) return opened;
    OUTRIDER_RETURN_IF_ERROR(close_drafter(parts, files, load, memory));
  }
}

// Parts with options, text and workers; `load` says how their target is to be opened.
Result<std::unique_ptr<EngineParts>> begin_parts(const OpenedFiles& files, TargetLoad& load) {
  OUTRIDER_TRY(ResolvedOptions resolved, resolve_options(files));
  OUTRIDER_TRY(load.kernels, kernels_of(resolved.engine));
  load.rank_threads = resolved.rank_threads;
  auto parts = std::make_unique<EngineParts>();
  parts->options = resolved.engine;
  OUTRIDER_RETURN_IF_ERROR(open_text(*parts, files.target));
  take_thinking_tokens(*parts->tokenizer, parts->options.speculation.relaxed);
  OUTRIDER_TRY(parts->corpus, open_corpus_of(parts->options, *parts->tokenizer));
  OUTRIDER_RETURN_IF_ERROR(open_workers(*parts, load.rank_threads));
  return parts;
}

template <typename Make>
auto with_errors(const Make& make) -> decltype(make()) {
  try {
    return make();
  } catch (const std::bad_alloc&) {
    return resource_error(
        "out of memory while loading the model; lower --ctx or the batch, or use smaller weights");
  } catch (const RankFailure& failure) {
    return io_error(failure.what());
  }
}

Result<std::unique_ptr<EngineParts>> make_parts(OpenedFiles& files, const LoadSink& sink) {
  const auto enter = [&](LoadStage stage) {
    if (sink) sink(stage);
  };
  TargetLoad load;
  OUTRIDER_TRY(std::unique_ptr<EngineParts> parts, begin_parts(files, load));
  enter(LoadStage::kWeights);
  MemoryCount memory;
  OUTRIDER_RETURN_IF_ERROR(open_target(*parts, files.target, load));
  if (acceptance_rule(parts->options) == AcceptanceRule::kRelaxed)
    OUTRIDER_RETURN_IF_ERROR(check_thinking_tokens(*parts));
  enter(LoadStage::kDrafter);
  OUTRIDER_RETURN_IF_ERROR(open_drafter_and_layers(*parts, files, load, memory));
  for (const AdapterSource& adapter : parts->options.adapters)
    OUTRIDER_RETURN_IF_ERROR(parts->adapters.load(*parts->target, adapter));
  tell_of_passes(*parts);
  open_device_loop(*parts);
  open_pass_choices(*parts);
  open_disk(*parts);
  if (files.drafts.head) parts->agreement = summarize_head(*files.drafts.head).agreement;
  enter(LoadStage::kCosts);
  const bool is_thorough = parts->options.calibrate;
  if ((is_thorough || parts->options.speculation.is_auto) && max_draft_len(*parts) > 0)
    parts->costs = calibrate(*parts, is_thorough ? kNoLimitMs : kQuickMs);
  parts->info.load_ms = now_ms() - files.start_ms;
  return parts;
}

Result<PlannedMemory> make_plan(const OpenedFiles& files) {
  TargetLoad load{.plans_only = true};
  OUTRIDER_TRY(const std::unique_ptr<EngineParts> parts, begin_parts(files, load));
  parts->options.prompt_cache.clear();
  const MemoryCount memory;
  OUTRIDER_RETURN_IF_ERROR(open_target(*parts, files.target, load));
  OUTRIDER_RETURN_IF_ERROR(open_drafter(*parts, files, load.kernels));
  OUTRIDER_RETURN_IF_ERROR(open_cache(*parts, memory));
  // The pages that the system and the allocator hold differ that much from run to run.
  constexpr int64_t kSpread = int64_t{2} << 20;
  PlannedMemory planned{.context = parts->options.context, .rest = rest_of(memory) + kSpread};
  // Too little for the least plan is no error here: the plan says what it needs.
  static_cast<void>(parts->target->keep_layers(parts->options.memory_limit - planned.rest));
  planned.layers = parts->target->streaming().value_or(LayerStreaming());
  return planned;
}

}  // namespace

Result<PlannedMemory> plan_parts(const OpenedFiles& files) {
  OUTRIDER_CHECK(files.names.options.memory_limit > 0);
  return with_errors([&] { return make_plan(files); });
}

Result<std::unique_ptr<EngineParts>> open_parts(OpenedFiles& files, const LoadSink& sink) {
  return with_errors([&] { return make_parts(files, sink); });
}

Result<std::unique_ptr<EngineParts>> open_parts(Names names, const LoadSink& sink) {
  return with_errors([&]() -> Result<std::unique_ptr<EngineParts>> {
    if (sink) sink(LoadStage::kFiles);
    OUTRIDER_TRY(OpenedFiles files, open_files(std::move(names)));
    return make_parts(files, sink);
  });
}

Result<std::unique_ptr<Engine>> open_engine(Names names) {
  OUTRIDER_TRY(std::unique_ptr<EngineParts> parts, open_parts(std::move(names)));
  return Engine::assemble(std::move(parts));
}

Result<std::unique_ptr<Engine>> Engine::open(EngineOptions options) {
  return open_engine(std::move(options));
}

}  // namespace outrider
