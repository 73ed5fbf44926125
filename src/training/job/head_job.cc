// SPDX-License-Identifier: Apache-2.0
#include "training/job/head_job.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iterator>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "base/interrupt_guard.h"
#include "base/log.h"
#include "config/methods.h"
#include "draft_heads/head_file.h"
#include "open/drafters/drafter_places.h"
#include "open/model_names.h"
#include "platform/durable_file.h"
#include "platform/file_descriptor.h"
#include "platform/machine_memory.h"
#include "training/core/checkpoint.h"
#include "training/core/device.h"
#include "training/core/progress.h"
#include "training/core/target_form.h"
#include "training/evaluation/acceptance_probe.h"
#include "training/heads/head_recipes.h"
#include "training/heads/head_trainer.h"
#include "training/job/head_quantizer.h"
#include "training/job/installed_head.h"
#include "training/job/job_rates.h"
#include "training/job/job_state.h"
#include "training/job/proof.h"

namespace outrider::training {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

constexpr double kQuestionTokens = 60.0;  // that a model writes for a question, on average
constexpr double kAnswerShare = 0.75;     // of the longest answer
constexpr size_t kProvedPrompts = 8;
constexpr int64_t kComparedTokens = 4096;  // of a larger draft vocabulary, in a step

// The kinds of heads that read the target's state; draft models are no heads.
std::vector<HeadRecipe> recipes_of_heads() {
  std::vector<HeadRecipe> recipes = head_recipes();
  std::erase_if(recipes, [](const HeadRecipe& recipe) {
    return method_row(recipe.decoding_type).needs != MethodNeeds::kHead;
  });
  return recipes;
}

// Tokens that a head can draft: a quarter, but for small and for very large vocabularies.
int64_t draft_vocabulary(int64_t vocab) {
  return std::min<int64_t>(32000, std::max(vocab / 4, std::min<int64_t>(vocab, 1024)));
}

Result<HeadRecipe> chosen_recipe(const std::string& kind, int64_t vocab) {
  std::vector<std::string> names;
  for (HeadRecipe& recipe : recipes_of_heads()) {
    names.push_back(recipe.command);
    if (recipe.command != kind) continue;
    CLI::App app;
    recipe.add_options(app);
    const int64_t drafted = draft_vocabulary(vocab);
    std::string arguments;
    if (app.get_option_no_throw("--draft-vocab") != nullptr)
      arguments += fmt::format("--draft-vocab {} ", drafted);
    if (app.get_option_no_throw("--loss-vocab") != nullptr && drafted > kComparedTokens)
      arguments += fmt::format("--loss-vocab {}", kComparedTokens);
    app.parse(arguments);
    return std::move(recipe);
  }
  return usage_error(fmt::format("--kind: expected {}, found {}", fmt::join(names, ", "), kind));
}

Result<fs::path> found_model(const fs::path& name) {
  Settings settings;
  settings.command = Command::kGenerate;
  settings.engine.model = name;
  OUTRIDER_RETURN_IF_ERROR(find_models(settings, {}));
  return settings.engine.model;
}

class HeadJob {
 public:
  static Result<HeadJob> open(JobOptions options);

  Status plan();
  Status run();

 private:
  HeadJob(JobOptions options, HeadRecipe recipe, ModelFile file, JobState state, std::string name)
      : options_(std::move(options)),
        recipe_(std::move(recipe)),
        file_(std::move(file)),
        state_(std::move(state)),
        name_(std::move(name)) {}

  JobSizes sizes() const;
  Result<int64_t> given_prompts() const;
  HeadOptions run_options() const;
  Status check_room(const JobRates& rates, const HeadPlan& plan) const;
  Status write_text();
  Status train();
  Status measure();
  Status measure_variant(int bits, const AcceptanceProbe& probe);
  Status choose();
  Status install();
  Status prove();
  void report() const;
  // Runs a piece of work unless it is done, and says how long it took.
  Status stage(int number, const std::string& piece, double forecast_s, Status (HeadJob::*work)());

  fs::path variant(int bits) const {
    return options_.out / (bits == 16 ? "training" : fmt::format("{}-bits", bits));
  }
  fs::path installed() const {
    const fs::path place = options_.install.empty() ? place_of_heads(file_) : options_.install;
    return fs::absolute(place / (model_stem(file_.path) + "-" + options_.kind));
  }

  JobOptions options_;
  HeadRecipe recipe_;
  ModelFile file_;
  JobState state_;
  std::string name_;   // of the model, as the user gave it
  int64_t given_ = 0;  // prompts in options_.text
};

std::string piece_of(int bits) { return fmt::format("measured in {} bits", bits); }

// The options that must stay, by their names.
ordered_json facts_of(const JobOptions& options, const ModelFile& file) {
  std::vector<std::string> text;
  for (const fs::path& path : options.text) text.push_back(fs::absolute(path).lexically_normal().string());
  ordered_json facts = {{"MODEL", model_stem(file.path) + " " + target_fingerprint(file)},
                        {"--kind", options.kind},
                        {"--text", text},
                        {"--device", options.head.device},
                        {"--seed", options.head.seed},
                        {"--context", options.head.context},
                        {"--batch-tokens", options.head.batch_tokens},
                        {"--response-tokens", options.head.response_tokens},
                        {"--prompt-limit", options.head.prompt_limit},
                        {"--measured-tokens", options.head.measured_tokens},
                        {"--steps", options.steps}};
  facts["--hours"] = options.steps > 0 ? 0.0 : options.hours;
  return facts;
}

// The sizes that suit the target.
void fit_sizes(const ModelConfig& target, HeadOptions& head) {
  const int64_t longest = std::max<int64_t>(kLengthUnit, target.max_context / kLengthUnit * kLengthUnit);
  head.context = std::min(head.context, longest);
  head.batch_tokens = std::max(head.batch_tokens, head.context);
  head.response_tokens = std::min(head.response_tokens, head.context);
  head.products = product_type("auto", head.device);
  if (head.threads == 0) head.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  if (!has_llama_form(target)) head.target_device = "cpu";  // libtorch does not know the family
}

Result<HeadJob> HeadJob::open(JobOptions options) {
  const std::string name = options.model.string();
  OUTRIDER_TRY(options.model, found_model(options.model));
  OUTRIDER_TRY(ModelFile file, open_model(options.model));
  OUTRIDER_TRY(HeadRecipe recipe, chosen_recipe(options.kind, file.config.vocab_size));
  if (options.out.empty()) options.out = model_stem(file.path) + "-" + options.kind + "-job";
  fit_sizes(file.config, options.head);
  options.head.target = options.model;
  OUTRIDER_TRY(JobState state, JobState::open(options.out, facts_of(options, file)));
  return HeadJob(std::move(options), std::move(recipe), std::move(file), std::move(state), name);
}

JobSizes HeadJob::sizes() const {
  const HeadOptions& head = options_.head;
  const bool writes_questions = options_.text.empty();
  JobSizes sizes{.question_tokens = writes_questions ? kQuestionTokens : 0.0,
                 .answer_tokens = kAnswerShare * static_cast<double>(head.response_tokens),
                 .batch_tokens = head.batch_tokens,
                 .measured_prompts = head.prompt_limit,
                 .measured_tokens = head.measured_tokens,
                 .levels = head.measured_depth};
  sizes.prompt_tokens = std::min(sizes.prompt_tokens, static_cast<double>(head.context) / 4.0);
  return sizes;
}

Result<int64_t> HeadJob::given_prompts() const {
  int64_t count = 0;
  for (const fs::path& path : options_.text) {
    OUTRIDER_TRY(const std::vector<DocumentSource> sources,
                 read_documents(path, file_, /*wants_prompts=*/true));
    for (const DocumentSource& source : sources) count += std::ssize(source.documents);
  }
  return count;
}

HeadOptions HeadJob::run_options() const {
  const HeadPlan plan = state_.plan();
  HeadOptions run = options_.head;
  run.data = options_.text;
  run.out = options_.out / "training";
  run.responses = options_.out / "responses";
  run.regenerate = std::min(plan.prompts, given_);
  run.self_questions = plan.prompts - run.regenerate;
  run.held_out_one_in = std::clamp<int64_t>(plan.prompts / 16, 4, 50);
  run.steps = plan.steps;
  run.warmup = std::clamp<int64_t>(plan.steps / 10, 1, 60);
  run.evaluate_every = plan.evaluate_every;
  run.checkpoint_every = plan.checkpoint_every;
  run.resume = latest_checkpoint(run.out / "checkpoints").has_value();
  return run;
}

// Error: the machine has less memory, or the disk less room, than the job will need.
Status HeadJob::check_room(const JobRates& rates, const HeadPlan& plan) const {
  constexpr double kGiga = 1e9;
  const int64_t memory =
      training_memory(weight_bytes(file_.path), rates.parameters, file_.config, options_.head);
  if (memory > machine_memory())
    return input_error(
        fmt::format("training needs about {:.1f} GB of memory, found {:.1f}; a smaller "
                    "--batch-tokens or a model in fewer bits needs less",
                    static_cast<double>(memory) / kGiga, static_cast<double>(machine_memory()) / kGiga));
  std::error_code code;
  const fs::path folder = fs::absolute(options_.out).parent_path();
  const fs::space_info space = fs::space(folder, code);
  const double text = static_cast<double>(plan.prompts) * sizes().window_tokens() * sizeof(int64_t);
  const double needed = text + 3.0 * 12.0 * static_cast<double>(rates.parameters);  // checkpoints
  if (code || static_cast<double>(space.available) >= needed) return {};
  return io_error(fmt::format("{}: the job needs about {:.1f} GB of disk, found {:.1f} free", folder.string(),
                              needed / kGiga, static_cast<double>(space.available) / kGiga));
}

Status HeadJob::plan() {
  OUTRIDER_TRY(given_, given_prompts());
  if (!state_.has_plan()) {
    log_info("measuring this machine");
    OUTRIDER_TRY(const std::unique_ptr<FrozenTarget> target, open_target(recipe_, options_.head));
    OUTRIDER_TRY(const JobRates rates, measure_rates(recipe_, options_.head, *target));
    const HeadPlan plan = options_.steps > 0 ? plan_for_steps(options_.steps, rates, sizes())
                                             : plan_for_hours(options_.hours, rates, sizes());
    OUTRIDER_RETURN_IF_ERROR(check_room(rates, plan));
    const JobForecast found = forecast(plan, rates, sizes());
    std::printf("%s", forecast_text(plan, found).c_str());
    if (options_.steps == 0 && found.total_s() > 1.1 * options_.hours * 3600.0)
      log_warning(fmt::format("the least takes longer than --hours {:g}", options_.hours));
    if (options_.is_dry) return {};
    return state_.keep_plan(plan, found);
  }
  std::printf("%s", forecast_text(state_.plan(), state_.forecast()).c_str());
  return {};
}

Status HeadJob::stage(int number, const std::string& piece, double forecast_s, Status (HeadJob::*work)()) {
  if (state_.is_done(piece)) return {};
  std::printf("stage %d of 5: %s\n", number, piece.c_str());
  std::fflush(stdout);
  const auto start = std::chrono::steady_clock::now();
  OUTRIDER_RETURN_IF_ERROR((this->*work)());
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::printf("stage %d of 5: %s, %s (forecast %s)\n", number, piece.c_str(),
              format_duration(seconds).c_str(), format_duration(forecast_s).c_str());
  std::fflush(stdout);
  return {};
}

// Error: another process works in the folder.
Result<FileDescriptor> lock_folder(const fs::path& folder) {
  OUTRIDER_RETURN_IF_ERROR(make_directories(folder));
  const fs::path path = folder / "lock";
  FileDescriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (file.get() >= 0 && ::flock(file.get(), LOCK_EX | LOCK_NB) == 0) return file;
  return io_error(fmt::format("{}: {}", folder.string(),
                              file.get() >= 0 ? "another outrider-train works there" : "cannot be written"));
}

Status HeadJob::run() {
  OUTRIDER_TRY(const FileDescriptor lock, lock_folder(options_.out));
  for (const char* folder : {"", "responses", "training"}) remove_unfinished(options_.out / folder);
  const JobForecast expected = state_.forecast();
  OUTRIDER_RETURN_IF_ERROR(stage(1, "text", expected.text_s, &HeadJob::write_text));
  OUTRIDER_RETURN_IF_ERROR(stage(2, "training", expected.training_s, &HeadJob::train));
  OUTRIDER_RETURN_IF_ERROR(stage(3, "measuring", expected.measuring_s, &HeadJob::measure));
  OUTRIDER_RETURN_IF_ERROR(stage(4, "installing", 0.0, &HeadJob::install));
  OUTRIDER_RETURN_IF_ERROR(stage(5, "proof", expected.proof_s, &HeadJob::prove));
  report();
  return {};
}

Status HeadJob::write_text() {
  const HeadOptions run = run_options();
  OUTRIDER_RETURN_IF_ERROR(make_directories(run.out));
  OUTRIDER_TRY(const std::unique_ptr<FrozenTarget> target, open_target(recipe_, run));
  OUTRIDER_TRY(const HeadData data, open_head_data(run, *target));
  return state_.finish("text", {{"tokens", data.counted_tokens()}});
}

Status HeadJob::train() {
  const Status trained = train_head(recipe_, run_options());
  if (!trained.ok() && InterruptGuard::interrupted())
    return input_error("stopped; the same command goes on with " + options_.out.string());
  OUTRIDER_RETURN_IF_ERROR(trained);
  return state_.finish("training", ordered_json::object());
}

Status HeadJob::measure_variant(int bits, const AcceptanceProbe& probe) {
  const fs::path folder = variant(bits);
  if (bits < 16) {
    OUTRIDER_TRY(const int64_t matrices, quantize_head(variant(16), folder, bits));
    if (matrices == 0) return state_.finish(piece_of(bits), nullptr);  // all are too small
  }
  const int64_t depth = options_.head.measured_depth;
  const auto measured = [&](TreeKind tree) {
    return probe.measure(probe.speculation(recipe_.decoding_type, folder, tree, depth));
  };
  OUTRIDER_TRY(const ServedAcceptance chain, measured(TreeKind::kChain));
  OUTRIDER_TRY(const ServedAcceptance tree, measured(TreeKind::kDynamic));
  log_info(fmt::format("{} bits: {:.2f} tokens per pass in chains, {:.2f} in trees", bits,
                       chain.tokens_per_pass, tree.tokens_per_pass));
  return state_.finish(
      piece_of(bits),
      {{"chain", chain.tokens_per_pass}, {"tree", tree.tokens_per_pass}, {"bytes", weight_bytes(folder)}});
}

Status HeadJob::measure() {
  const HeadOptions run = run_options();
  OUTRIDER_TRY(const std::unique_ptr<FrozenTarget> target, open_target(recipe_, run));
  OUTRIDER_TRY(const HeadData data, open_head_data(run, *target));
  OUTRIDER_TRY(const AcceptanceProbe probe, AcceptanceProbe::create(run, *target, data));
  for (const int bits : {16, 8, 4}) {
    if (!state_.is_done(piece_of(bits))) OUTRIDER_RETURN_IF_ERROR(measure_variant(bits, probe));
  }
  std::vector<std::vector<TokenId>> prompts = probe.prompts();
  if (prompts.size() > kProvedPrompts) prompts.resize(kProvedPrompts);
  OUTRIDER_RETURN_IF_ERROR(state_.finish("held-out prompts", prompts));
  return choose();
}

// Takes the variant with which chains are fastest where passes wait for memory.
Status HeadJob::choose() {
  const auto target_bytes = static_cast<double>(std::max<int64_t>(1, weight_bytes(file_.path)));
  int best = 16;
  double best_speed = 0.0;
  for (const int bits : {16, 8, 4}) {
    const ordered_json& found = state_.result(piece_of(bits));
    if (found.is_null()) continue;
    const double speed = chain_speedup(found.at("chain"), options_.head.measured_depth,
                                       found.at("bytes").get<double>() / target_bytes);
    if (speed > best_speed) best = bits;
    best_speed = std::max(best_speed, speed);
  }
  return state_.finish("measuring", {{"bits", best}});
}

Status HeadJob::install() {
  const int bits = state_.result("measuring").at("bits");
  const fs::path place = installed();
  OUTRIDER_RETURN_IF_ERROR(make_directories(place.parent_path()));
  OUTRIDER_RETURN_IF_ERROR(install_head(variant(bits), place));
  const Status found = check_found(file_, place);
  if (!found.ok()) log_warning(found.error().message);
  return state_.finish("installing", {{"path", place.string()}, {"is_found", found.ok()}});
}

Status HeadJob::prove() {
  const ordered_json& place = state_.result("installing");
  EngineOptions engine;
  engine.model = file_.path;
  engine.threads = options_.head.threads;
  const fs::path named = place.at("is_found").get<bool>() ? "" : place.at("path").get<std::string>();
  OUTRIDER_TRY(const Proof proof, prove_drafter(engine, named, state_.result("held-out prompts"),
                                                options_.head.measured_tokens));
  return state_.finish("proof", {{"tokens", proof.tokens},
                                 {"length", proof.length},
                                 {"plain_rate", proof.plain_rate},
                                 {"auto_rate", proof.auto_rate}});
}

void HeadJob::report() const {
  const int bits = state_.result("measuring").at("bits");
  const ordered_json &lengths = state_.result(piece_of(bits)), &place = state_.result("installing"),
                     &proof = state_.result("proof");
  const auto path = place.at("path").get<std::string>();
  const std::string option =
      place.at("is_found").get<bool>() ? std::string() : fmt::format(" --speculative-model {}", path);
  std::printf(
      "%s", fmt::format("head       {}, {} bits\n"
                        "lengths    {:.2f} tokens per pass in chains, {:.2f} in trees, on held-out prompts\n"
                        "identical  {} tokens, greedy and sampled\n"
                        "speed      {:.1f} -> {:.1f} tokens/s on these prompts\n"
                        "use it     outrider generate {}{} -p \"...\"\n",
                        path, bits, lengths.at("chain").get<double>(), lengths.at("tree").get<double>(),
                        proof.at("tokens").get<int64_t>(), proof.at("plain_rate").get<double>(),
                        proof.at("auto_rate").get<double>(), name_, option)
                .c_str());
}

}  // namespace

Status run_head_job(JobOptions options) {
  const bool is_dry = options.is_dry;
  OUTRIDER_TRY(HeadJob job, HeadJob::open(std::move(options)));
  OUTRIDER_RETURN_IF_ERROR(job.plan());
  return is_dry ? Status() : job.run();
}

}  // namespace outrider::training
