// SPDX-License-Identifier: Apache-2.0
#include "training/heads/draft_model.h"

#include <ATen/ATen.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>

#include "base/counter_rng.h"
#include "training/core/decoder_layers.h"
#include "training/core/safetensors_file.h"
#include "training/head_data/frozen_target.h"
#include "training/head_data/head_data.h"
#include "training/heads/head_export.h"
#include "training/heads/row_loss.h"
#include "training/lm/llama.h"

namespace outrider::training {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kShortestPrompt = 8;  // least tokens of a window that the draft continues

struct DraftOptions {
  LlamaConfig shape = {.hidden_size = 192, .layers = 2, .heads = 3, .kv_heads = 1, .ffn_size = 512};
  std::string divergence = "forward";
  double on_policy = 0.0;  // share of the steps that learn from text written by the draft
  fs::path init;
  std::vector<fs::path> boost;
  int64_t boost_depth = 4;    // tokens of a continuation
  double boost_weight = 0.0;  // weight of the tokens that the drafts in `boost` reproduce
};

// A draft given with --boost.
struct Solver {
  std::unique_ptr<FrozenTarget> model;
  at::Tensor head;  // f32 [vocab, its hidden]
};

class DraftModel final : public DraftHead {
 public:
  DraftModel(const HeadContext& context, const DraftOptions& options, Llama model,
             std::vector<Solver> solvers)
      : options_(options),
        run_(context.options),
        target_(context.target),
        target_head_(context.target.output_head().to(context.device).to(context.options.products)),
        model_(std::move(model)),
        solvers_(std::move(solvers)) {}

  FeatureNeeds needs() const override { return {}; }
  NamedTensors parameters() const override { return model_.parameters(); }
  HeadLoss loss(const HeadBatch& batch) const override;
  HeadExport exported() const override;
  nlohmann::json fingerprint() const override;
  std::vector<Document> rewritten(std::span<const Window> windows, uint64_t seed) const override;
  std::vector<fs::path> companions() const override { return options_.boost; }

 private:
  Divergence divergence() const {
    return options_.divergence == "reverse" ? Divergence::kReverse : Divergence::kForward;
  }
  void write_text(at::Tensor tokens, const at::Tensor& is_own, int64_t shared, uint64_t seed) const;
  // f32 [windows, length]: weight of every row's token given the drafts in `boost`.
  at::Tensor learned_share(const HeadBatch& batch, const at::Tensor& target_hidden) const;

  DraftOptions options_;
  HeadOptions run_;
  const FrozenTarget& target_;
  at::Tensor target_head_;  // [vocab, target's hidden] in the type of products
  Llama model_;
  std::vector<Solver> solvers_;
};

// Moves column t - by of x [windows, length] to column t; the first `by` columns are zeros.
at::Tensor delayed(const at::Tensor& x, int64_t by) {
  const int64_t kept = std::max<int64_t>(0, x.size(1) - by);
  return at::cat({at::zeros({x.size(0), x.size(1) - kept}, x.options()), x.narrow(1, 0, kept)}, 1);
}

// The tokens of every window, without padding.
std::vector<std::vector<TokenId>> texts_of(const HeadBatch& batch) {
  const at::Tensor tokens = batch.tokens.cpu().contiguous(), known = batch.known.sum(1).cpu();
  std::vector<std::vector<TokenId>> texts;
  for (int64_t i = 0; i < tokens.size(0); ++i) {
    const int64_t* row = tokens.data_ptr<int64_t>() + i * tokens.size(1);
    texts.emplace_back(row, row + static_cast<int64_t>(known[i].item<double>()));
  }
  return texts;
}

// The model's likeliest token after every row, int64 [windows, length]; 0 for padding.
at::Tensor foreseen_by(const Solver& solver, const HeadBatch& batch) {
  const std::vector<std::vector<TokenId>> texts = texts_of(batch);
  const std::vector<std::span<const TokenId>> spans(texts.begin(), texts.end());
  const auto states = solver.model->run(spans);
  TORCH_CHECK(states.ok(), "--boost: ", states.ok() ? "" : states.error().message);
  at::Tensor tokens = at::zeros(batch.tokens.sizes(), at::kLong);
  for (size_t i = 0; i < states->size(); ++i) {
    const at::Tensor found = likeliest_tokens((*states)[i].hidden, solver.head);
    tokens[static_cast<int64_t>(i)].narrow(0, 0, found.numel()).copy_(found);
  }
  return tokens.to(batch.tokens.device());
}

at::Tensor DraftModel::learned_share(const HeadBatch& batch, const at::Tensor& target_hidden) const {
  const at::NoGradGuard no_grad;
  const at::Tensor wanted = likeliest_tokens(target_hidden, target_head_).view(batch.tokens.sizes());
  at::Tensor reproduced = at::zeros_like(batch.counted);
  for (const Solver& solver : solvers_) {
    const at::Tensor right = foreseen_by(solver, batch).eq(wanted).to(at::kFloat) * shifted(batch.known, 1);
    reproduced = at::maximum(reproduced, reproduced_share(right, options_.boost_depth));
  }
  return 1.0 - (1.0 - options_.boost_weight) * reproduced;
}

// Row t reads the tokens up to t and predicts token t + 1; its distribution follows from the target's state
// t.
HeadLoss DraftModel::loss(const HeadBatch& batch) const {
  const int64_t windows = batch.tokens.size(0), length = batch.tokens.size(1);
  const LlamaWeights weights = model_.compute_weights(run_.products);
  const at::Tensor hidden = batch.hidden.reshape({windows * length, -1}).to(run_.products);
  const at::Tensor counts = shifted(batch.counted, 1);
  // Evaluation takes all of the text.
  const bool is_boosted = !solvers_.empty() && !batch.measures;
  const at::Tensor weight = is_boosted ? counts * learned_share(batch, hidden) : counts;
  const RowLoss distribution = distribution_loss(
      {.hidden = model_.forward(weights, batch.tokens),
       .head = weights.embedding,
       .weight = weight.flatten()},
      {.hidden = hidden, .head = target_head_, .hard = run_.hard_share, .divergence = divergence()});
  HeadLoss result{.loss = distribution.loss, .depths = {}};
  const at::Tensor agrees = distribution.agrees.view({windows, length});
  // The text is the target's own, so after d right drafts the draft reads the same tokens as row t + d.
  const int64_t depths = batch.measures ? std::min(run_.measured_depth, length - 1) : 1;
  for (int64_t depth = 0; depth < depths; ++depth)
    result.depths.push_back({shifted(agrees, depth), counts * shifted(counts, depth)});
  return result;
}

HeadExport DraftModel::exported() const {
  const ModelConfig& target = target_.config();
  LlamaConfig shape = model_.config();
  shape.max_context = static_cast<int>(target.max_context);
  std::optional<int> end;
  if (!target.stop_tokens.empty()) end = target.stop_tokens.front();
  return {.tensors = model_.huggingface_tensors(),
          .config = config_json(shape, end),
          .files = tokenizer_files(target_)};
}

nlohmann::json DraftModel::fingerprint() const {
  std::vector<std::string> solvers;
  for (const Solver& solver : solvers_) solvers.push_back(solver.model->fingerprint());
  return {{"divergence", options_.divergence},   {"on_policy", options_.on_policy},
          {"temperature", run_.temperature},     {"boost", solvers},
          {"boost_depth", options_.boost_depth}, {"boost_weight", options_.boost_weight}};
}

// The position from which the draft writes the text itself: the first token that counts.
size_t first_own(const Window& window) {
  const auto first = std::find(window.counted.begin(), window.counted.end(), uint8_t{1});
  const auto place = static_cast<size_t>(first - window.counted.begin());
  return std::min(std::max(place, size_t{kShortestPrompt}), window.tokens.size());
}

// Samples the tokens where `is_own`, both [windows, length], in place; all windows begin with `shared` tokens
// of their own text.
void DraftModel::write_text(at::Tensor tokens, const at::Tensor& is_own, int64_t shared,
                            uint64_t seed) const {
  const LlamaWeights weights = model_.compute_weights(run_.products);
  const at::Device device = weights.embedding.device();
  const int64_t length = tokens.size(1);
  at::Generator generator = seeded_generator(seed);
  KvCache cache = model_.make_cache(tokens.size(0), length, run_.products);
  at::Tensor column = tokens.narrow(1, 0, shared);
  for (int64_t t = shared; t < length; ++t) {
    const at::Tensor hidden = model_.extend(weights, column.to(device), cache);
    const at::Tensor logits = at::linear(hidden, weights.embedding).to(at::kFloat).cpu();
    const at::Tensor drawn = at::multinomial(at::softmax(logits / run_.temperature, -1), 1, false, generator);
    column = at::where(is_own.narrow(1, t, 1), drawn, tokens.narrow(1, t, 1));
    tokens.narrow(1, t, 1).copy_(column);
  }
}

// A window with the tokens of `row` instead of its own; tokens after the end of the text do not count.
Document rewritten_window(const Window& window, const int64_t* row, const std::vector<TokenId>& ends) {
  Document text{.tokens = {row, row + window.tokens.size()},
                .counted = {window.counted.begin(), window.counted.end()}};
  const auto end =
      std::find_if(text.tokens.begin() + static_cast<int64_t>(first_own(window)), text.tokens.end(),
                   [&](TokenId token) { return std::find(ends.begin(), ends.end(), token) != ends.end(); });
  if (end != text.tokens.end())
    std::fill(text.counted.begin() + (end - text.tokens.begin()) + 1, text.counted.end(), uint8_t{0});
  return text;
}

// The draft samples a continuation of every window.
std::vector<Document> DraftModel::rewritten(std::span<const Window> windows, uint64_t seed) const {
  if (random_uniform({.seed = seed, .purpose = RandomPurpose::kDraft}) >= options_.on_policy) return {};
  const at::NoGradGuard no_grad;
  size_t longest = 0, shared = windows.front().tokens.size();
  for (const Window& window : windows) {
    longest = std::max(longest, window.tokens.size());
    shared = std::min(shared, first_own(window));
  }
  const auto count = std::ssize(windows), length = static_cast<int64_t>(longest);
  at::Tensor tokens = at::zeros({count, length}, at::kLong), is_own = at::zeros({count, length}, at::kBool);
  for (int64_t i = 0; i < count; ++i) {
    const Window& window = windows[static_cast<size_t>(i)];
    std::copy(window.tokens.begin(), window.tokens.end(), tokens.data_ptr<int64_t>() + i * length);
    const auto first = static_cast<int64_t>(first_own(window));
    is_own[i].narrow(0, first, length - first).fill_(true);
  }
  write_text(tokens, is_own, static_cast<int64_t>(shared), seed);
  std::vector<Document> texts;
  for (int64_t i = 0; i < count; ++i)
    texts.push_back(rewritten_window(windows[static_cast<size_t>(i)], tokens.data_ptr<int64_t>() + i * length,
                                     target_.config().stop_tokens));
  return texts;
}

// The target's embedding along its principal directions, [vocab, width], scaled to the deviation of drawn
// weights: tokens that are similar to the target begin with similar embeddings.
at::Tensor principal_embedding(const at::Tensor& embedding, int64_t width, at::Generator& generator) {
  constexpr double kDeviation = 0.02;
  const at::Tensor centred = embedding - embedding.mean(0, /*keepdim=*/true);
  const int64_t kept = std::min(width, embedding.size(1));
  const at::Tensor directions =
      std::get<1>(at::linalg_eigh(at::matmul(centred.t(), centred)))
          .narrow(1, embedding.size(1) - kept, kept);  // in the order of rising eigenvalues
  const at::Tensor rows = at::matmul(centred, directions);
  return at::cat({rows * (kDeviation / rows.std().item<double>()),
                  normal_weight({embedding.size(0), width - kept}, kDeviation, generator)},
                 1);
}

Result<Llama> initial_model(const HeadContext& context, const DraftOptions& options) {
  const ModelConfig& target = context.target.config();
  LlamaConfig shape = options.shape;
  if (!options.init.empty()) {
    OUTRIDER_TRY(shape, read_config(options.init));
    if (shape.vocab_size != target.vocab_size) {
      return usage_error("--init: a model with the target's " + std::to_string(target.vocab_size) +
                         " tokens is expected, found " + std::to_string(shape.vocab_size));
    }
  }
  shape.vocab_size = static_cast<int>(target.vocab_size);
  shape.max_context = static_cast<int>(context.options.context);  // positions in training
  OUTRIDER_RETURN_IF_ERROR(check_shape(shape));
  if (options.init.empty()) {
    Llama model = Llama::initialized(shape, context.options.seed, context.device);
    at::Generator generator = seeded_generator(context.options.seed);
    const at::NoGradGuard no_grad;
    model.parameters().front().second.copy_(
        principal_embedding(context.target.embedding(), shape.hidden_size, generator));
    return model;
  }
  OUTRIDER_TRY(const NamedTensors tensors, read_safetensors(options.init / "model.safetensors"));
  return Llama::from_tensors(shape, tensors, context.device);
}

Result<std::unique_ptr<DraftHead>> make(const HeadContext& context, const DraftOptions& options) {
  OUTRIDER_RETURN_IF_ERROR(check_tokenizer_file(context.target));
  std::vector<Solver> solvers;
  for (const fs::path& path : options.boost) {
    OUTRIDER_TRY(std::unique_ptr<FrozenTarget> solver, FrozenTarget::open(path, context.options.threads));
    if (solver->config().vocab_size != context.target.config().vocab_size) {
      return usage_error("--boost: drafts with the target's " +
                         std::to_string(context.target.config().vocab_size) + " tokens are expected, found " +
                         std::to_string(solver->config().vocab_size) + " in " + path.string());
    }
    at::Tensor head = solver->output_head();
    solvers.push_back({std::move(solver), std::move(head)});
  }
  OUTRIDER_TRY(Llama model, initial_model(context, options));
  return std::unique_ptr<DraftHead>(
      std::make_unique<DraftModel>(context, options, std::move(model), std::move(solvers)));
}

void add_options(CLI::App& command, DraftOptions& options) {
  const auto share = CLI::Range(0.0, 1.0);
  add_shape_options(command, options.shape);
  command.add_option("--init", options.init, "model folder with the shape and weights to begin with");
  command.option_defaults()->group("Distillation");
  command
      .add_option(
          "--divergence", options.divergence,
          "forward: KL(target || draft), covers what the target may say; reverse: KL(draft || target)")
      ->check(CLI::IsMember({"forward", "reverse"}));
  command
      .add_option("--on-policy", options.on_policy,
                  "share of the steps where the draft writes the responses itself, at --temperature")
      ->check(share);
  command.add_option(
      "--boost", options.boost,
      "trained drafts: tokens they already reproduce count less, and all drafts are measured together");
  command.add_option("--boost-depth", options.boost_depth, "tokens of a continuation that is reproduced")
      ->check(CLI::Range(1, 64));
  command.add_option("--boost-weight", options.boost_weight, "weight of the tokens they reproduce; 0: none")
      ->check(share);
}

}  // namespace

at::Tensor reproduced_share(const at::Tensor& right, int64_t depth) {
  at::Tensor reproduced = right;  // 1 where the whole continuation after the row is right
  for (int64_t i = 1; i < depth; ++i) reproduced = reproduced * shifted(right, i);
  at::Tensor sum = reproduced;
  for (int64_t i = 1; i < depth; ++i) sum = sum + delayed(reproduced, i);
  return sum / static_cast<double>(depth);
}

HeadRecipe draft_recipe() {
  auto options = std::make_shared<DraftOptions>();
  HeadOptions defaults;
  defaults.learning_rate = 2e-3;
  defaults.weight_decay = 0.1;
  defaults.hard_share = 0.5;
  return {.command = "draft",
          .decoding_type = Method::kDraftTarget,
          .description = "Distil a separate small model, or several that complement each other",
          .defaults = std::move(defaults),
          .add_options = [options](CLI::App& command) { add_options(command, *options); },
          .make = [options](const HeadContext& context) { return make(context, *options); }};
}

}  // namespace outrider::training
