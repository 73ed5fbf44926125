// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "cli/commands/commands.h"
#include "cli/reports/completion_json.h"
#include "cli/reports/drafter_json.h"
#include "cli/reports/memory_forecast.h"
#include "cli/terminal.h"
#include "config/methods.h"
#include "corpus/open_corpus.h"
#include "draft_heads/head_file.h"
#include "draft_heads/head_fit.h"
#include "formats/json_object.h"
#include "formats/model_file.h"
#include "models/backend/device/pass_lists.h"
#include "models/decoder_weights.h"
#include "open/default_context.h"
#include "open/device_choice.h"
#include "open/drafter_report.h"
#include "open/drafters/drafter_search.h"
#include "open/parts.h"
#include "platform/cpu_topology.h"
#include "tensor/dtype.h"

namespace outrider {
namespace {

std::string_view tokenizer_name(TokenizerKind kind) {
  switch (kind) {
    case TokenizerKind::kByteLevelBpe:
      return "byte-level BPE";
    case TokenizerKind::kSentencePiece:
      return "SentencePiece";
    case TokenizerKind::kUnigram:
      return "unigram";
  }
  return "";
}

struct Totals {
  int64_t parameters = 0;
  int64_t active = 0;  // parameters that a token passes: without the experts that it does not choose
  int64_t bytes = 0;
  std::map<std::string_view, int64_t> tensors_by_dtype;
};

constexpr std::string_view kExperts = ".mlp.experts.";

bool is_of_expert(const std::string& name) { return name.find(kExperts) != std::string::npos; }

Totals totals_of(const ModelFile& model) {
  const ExpertTraits& experts = model.config.experts;
  Totals totals;
  int64_t of_experts = 0;
  for (const auto& [name, tensor] : model.tensors) {
    const int64_t parameters = tensor.rows() * tensor.cols();
    totals.parameters += parameters;
    if (is_of_expert(name)) of_experts += parameters;
    totals.bytes += tensor.bytes();
    ++totals.tensors_by_dtype[dtype_name(tensor.dtype)];
  }
  totals.active = totals.parameters;
  if (of_experts != 0) totals.active -= of_experts / experts.count * (experts.count - experts.used);
  return totals;
}

// The bytes of a sequence's state, which do not depend on its length.
int64_t state_bytes(const ModelConfig& config) {
  int64_t bytes = 0;
  for (const LayerBlocks& layer : make_layers(config))
    bytes += layer.mixer->cache().state_size * static_cast<int64_t>(sizeof(float));
  return bytes;
}

// 0: no layer has a window.
int64_t widest_window(const ModelConfig& config) {
  int64_t widest = 0;
  for (const LayerTraits& layer : config.layer_traits) widest = std::max(widest, layer.window);
  return widest;
}

nlohmann::ordered_json config_json(const ModelConfig& config) {
  return {{"family", config.family},
          {"vocab_size", config.vocab_size},
          {"hidden_size", config.hidden_size},
          {"layer_count", config.layer_count},
          {"head_count", config.head_count},
          {"kv_head_count", config.kv_head_count},
          {"head_dim", config.head_dim},
          {"ffn_size", config.ffn_size},
          {"experts", config.experts.count},
          {"used_experts", config.experts.used},
          {"expert_ffn_size", config.experts.ffn_size},
          {"cache_bytes_per_token", cache_bytes_per_token(config, DType::kBF16)},
          {"state_bytes", state_bytes(config)},
          {"max_context", config.max_context},
          {"rope_theta", config.ropes.front().theta},
          {"sliding_window", widest_window(config)},
          {"tied_embeddings", config.tied_embeddings},
          {"qkv_bias", config.qkv_bias},
          {"qk_norm", config.qk_norm != QkNorm::kNone},
          {"stop_tokens", config.stop_tokens}};
}

nlohmann::ordered_json tokenizer_json(const ModelFile& model) {
  const TokenizerSpec& spec = model.tokenizer;
  if (spec.pieces.empty()) return {{"kind", "none"}};
  return {{"kind", tokenizer_name(spec.kind)},
          {"vocab_size", spec.pieces.size()},
          {"merges", spec.merges.size()},
          {"bos", model.bos_token},
          {"eos", model.eos_token},
          {"adds_bos", spec.add_bos},
          {"chat_template", !model.chat_template.empty()}};
}

nlohmann::ordered_json model_json(const ModelFile& model) {
  const Totals totals = totals_of(model);
  nlohmann::ordered_json json;
  json["path"] = model.path.string();
  json["format"] = model.format;
  json["config"] = config_json(model.config);
  json["tokenizer"] = tokenizer_json(model);
  json["metadata"] = model.metadata;
  json["parameters"] = totals.parameters;
  json["active_parameters"] = totals.active;
  json["bytes"] = totals.bytes;
  json["tensors"] = nlohmann::ordered_json::array();
  for (const auto& [name, tensor] : model.tensors) {
    json["tensors"].push_back({{"name", name},
                               {"dtype", dtype_name(tensor.dtype)},
                               {"shape", tensor.shape},
                               {"bytes", tensor.bytes()}});
  }
  return json;
}

// Prints the title and a line "  key  value" for each member. Only --json shows the metadata, which repeats
// the configuration.
std::string section_text(std::string_view title, const nlohmann::ordered_json& section) {
  std::string text = fmt::format("{}\n", title);
  for (const auto& [key, value] : section.items()) {
    const std::string shown = value.is_string() ? value.get<std::string>() : value.dump();
    text += fmt::format("  {:<22} {}\n", key, shown);
  }
  return text;
}

bool is_of_first_expert(const std::string& name) {
  return name.find(".0.", name.find(kExperts)) != std::string::npos;
}

// Shows the first expert of each layer for all.
std::string model_text(const ModelFile& model) {
  const Totals totals = totals_of(model);
  std::string text = fmt::format("{} ({})\n\n", model.path.string(), model.format);
  text += section_text("config", config_json(model.config)) + "\n";
  text += section_text("tokenizer", tokenizer_json(model)) + "\ntensors\n";
  for (const auto& [name, tensor] : model.tensors) {
    if (is_of_expert(name) && !is_of_first_expert(name)) continue;
    text += fmt::format("  {:<52} {:<5} {:>14} {:>14} bytes\n", name, dtype_name(tensor.dtype),
                        nlohmann::json(tensor.shape).dump(), tensor.bytes());
  }
  std::string dtypes;
  for (const auto& [dtype, count] : totals.tensors_by_dtype) dtypes += fmt::format(", {} {}", count, dtype);
  const std::string active =
      totals.active == totals.parameters
          ? ""
          : fmt::format(" ({:.2f} M of them for each token)", static_cast<double>(totals.active) / 1e6);
  text += fmt::format("\n{} tensors{}; {:.2f} M parameters{}, {:.2f} MiB\n", model.tensors.size(), dtypes,
                      static_cast<double>(totals.parameters) / 1e6, active,
                      static_cast<double>(totals.bytes) / (1024.0 * 1024.0));
  return text;
}

// Tells what to expect of `outrider generate` under --memory, where Auto drafts from the text alone.
Result<nlohmann::ordered_json> memory_json(const OpenedFiles& files) {
  constexpr double kAcceptanceLength = 3;  // tokens of a pass over a tree, as an example
  OUTRIDER_TRY(const MemoryForecast forecast, forecast_memory(files));
  const LayerStreaming& layers = forecast.memory.layers;
  nlohmann::ordered_json json;
  json["limit"] = files.names.options.memory_limit;
  json["needed"] = forecast.memory.needed();
  json["context"] = forecast.memory.context;
  json["layers_read_per_pass"] = layers.layers;
  if (layers.experts > 0) json["experts_in_memory"] = layers.kept_experts;
  json["bytes_read_per_pass"] = layers.bytes;
  if (layers.bytes == 0) return json;
  json["bytes_per_second"] = std::llround(forecast.read_rate);
  json["ms_per_pass"] = std::llround(1e3 * forecast.pass_seconds());
  json["tokens_per_second"] = 1 / forecast.pass_seconds();
  json["tokens_per_second_with_trees_of_3"] = kAcceptanceLength / forecast.pass_seconds();
  return json;
}

// The machine that would compute the model, and what is in its memory if it has its own.
nlohmann::ordered_json device_json(const ModelFile& model, const EngineOptions& options) {
  const DeviceChoice choice = choose_device(options, model);
  const Placement placement = expected_placement(options, model);
  const DeviceNeeds needs = device_needs(options, model, placement);
  nlohmann::ordered_json json;
  json["name"] = device_name(choice.device);
  if (!choice.reason.empty()) json["not_a_gpu"] = choice.reason;
  json["gpu_part"] = placement_text(placement, model.config);
  if (const std::string part = part_without_loop(model.config); !part.empty())
    json["steps_need_processor"] = part;
  json["gpu_weight_bytes"] = needs.weights;
  json["gpu_cache_bytes"] = needs.cache;
  json["gpu_scratch_bytes"] = needs.scratch;
  json["context"] = needs.context;
  return json;
}

// The index of --corpus in the tokens of the model, built where it is not there.
Result<nlohmann::ordered_json> corpus_json(const Settings& settings, const ModelFile& model) {
  OUTRIDER_TRY(const Names names, names_of(settings, Unasked::kAuto));
  OUTRIDER_TRY(const auto tokenizer, Tokenizer::create(model.tokenizer));
  const CorpusOptions options{.texts = settings.engine.corpus,
                              .cache = names.options.corpus_cache,
                              .threads = static_cast<int>(allowed_cpus().size())};
  OUTRIDER_TRY(const std::shared_ptr<const Corpus> corpus, open_corpus(options, *tokenizer));
  const CorpusFacts& facts = corpus->facts();
  return nlohmann::ordered_json{
      {"files", facts.files},   {"documents", facts.documents},         {"text_bytes", facts.text_bytes},
      {"tokens", facts.tokens}, {"index_bytes", corpus->index_bytes()}, {"index", corpus->path().string()}};
}

// The drafters that Auto would use, and why others are left out.
DrafterSearch drafters_of(const ModelFile& model) {
  constexpr size_t kModels = 3;  // draft models to compare
  if (model.tensors.empty()) return {};
  return find_drafters(model, {.models = kModels, .after_heads = true});
}

std::string drafters_text(const DrafterSearch& search) {
  std::string text = "\ndrafters\n";
  for (const DrafterLine& line : drafter_lines(search)) text += fmt::format("  {}\n", text_of(line));
  if (search.found.empty()) text += "  uses     the text alone: no drafter for this target was found\n";
  if (search.others > 0 || search.uncompared > 0)
    text += fmt::format("  models that draft for no target like this: {}; not compared: {}\n", search.others,
                        search.uncompared);
  return text;
}

// A learned drafter: its target, its own configuration and its tensors, including integers.
nlohmann::ordered_json head_json(const HeadFile& head) {
  const HeadSummary summary = summarize_head(head);
  nlohmann::ordered_json json;
  json["path"] = head.file.path.string();
  json["format"] = head.file.format;
  json["drafter"] = {{"kind", method_name(summary.method)},
                     {"hidden_size", summary.hidden_size},
                     {"vocab_size", summary.vocab_size},
                     {"target", summary.target}};
  json["config"] = nlohmann::ordered_json::parse(simdjson::minify(head.config.root().fields()));
  json["parameters"] = summary.parameters;
  json["bytes"] = summary.bytes;
  json["tensors"] = nlohmann::ordered_json::array();
  for (const auto& [name, entry] : head.tensors) {
    json["tensors"].push_back({{"name", name},
                               {"dtype", entry.dtype ? dtype_name(*entry.dtype) : entry.dtype_name},
                               {"shape", entry.shape},
                               {"bytes", entry.data.size()}});
  }
  return json;
}

std::string head_text(const HeadFile& head) {
  const nlohmann::ordered_json json = head_json(head);
  std::string text = fmt::format("{} ({})\n\n", head.file.path.string(), head.file.format);
  text += section_text("drafter", json["drafter"]) + "\n" + section_text("config", json["config"]) +
          "\ntensors\n";
  for (const auto& tensor : json["tensors"]) {
    text += fmt::format("  {:<52} {:<5} {:>14} {:>14} bytes\n", tensor["name"].get<std::string>(),
                        tensor["dtype"].get<std::string>(), tensor["shape"].dump(),
                        tensor["bytes"].get<int64_t>());
  }
  return text + fmt::format("\n{} tensors; {:.2f} M parameters, {:.2f} MiB\n", json["tensors"].size(),
                            json["parameters"].get<double>() / 1e6,
                            json["bytes"].get<double>() / (1024.0 * 1024.0));
}

}  // namespace

Status run_inspect(const Settings& settings) {
  OUTRIDER_TRY(const std::filesystem::path path, chosen_model(settings));
  OUTRIDER_TRY(const HeadOrFiles found, open_head_or_files(path));
  if (found.head) {
    write_output(settings.json ? json_line(head_json(*found.head)) : head_text(*found.head));
    return {};
  }
  OpenedFiles files{.names = Names(settings.engine)};
  OUTRIDER_TRY(files.target, found.files ? open_model(found.files) : describe_model(path));
  const ModelFile& model = files.target;
  std::optional<nlohmann::ordered_json> memory;
  if (settings.engine.memory_limit > 0) {
    OUTRIDER_TRY(files.names, names_of(settings, Unasked::kAuto));
    OUTRIDER_TRY(files.drafts, open_draft_files(files.names.options.speculation));
    OUTRIDER_TRY(memory, memory_json(files));
  }
  std::optional<nlohmann::ordered_json> corpus;
  if (!settings.engine.corpus.empty()) {
    OUTRIDER_TRY(corpus, corpus_json(settings, model));
  }
  const DrafterSearch drafters = drafters_of(model);
  if (settings.json) {
    nlohmann::ordered_json json = model_json(model);
    json["drafters"] = drafters_json(drafter_lines(drafters));
    json["device"] = device_json(model, settings.engine);
    if (memory) json["memory"] = *memory;
    if (corpus) json["corpus"] = *corpus;
    write_output(json_line(json));
  } else {
    write_output(model_text(model) + drafters_text(drafters) + "\n" +
                 section_text("device", device_json(model, settings.engine)) +
                 (memory ? "\n" + section_text("memory", *memory) : "") +
                 (corpus ? "\n" + section_text("corpus", *corpus) : ""));
  }
  return {};
}

}  // namespace outrider
