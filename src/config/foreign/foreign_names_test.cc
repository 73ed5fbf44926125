// SPDX-License-Identifier: Apache-2.0
// Configurations and commands of other systems' documentation (tests/data/peer_configs) mean what their first
// lines say in our own words.
#include "config/foreign/foreign_names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "config/arguments.h"
#include "config/foreign/peer_options.h"
#include "config/methods.h"
#include "config/option_table.h"
#include "config/option_value.h"
#include "config/resolve_settings.h"
#include "config/speculative_key_table.h"

namespace outrider {
namespace {

namespace fs = std::filesystem;

// Words of a shell command, single quotes included.
std::vector<std::string> shell_words(const std::string& text) {
  std::vector<std::string> words;
  bool quoted = false, open = false;
  for (const char c : text) {
    if (!quoted && (c == ' ' || c == '\n')) {
      open = false;
      continue;
    }
    if (!open) words.emplace_back();
    open = true;
    if (c == '\'') {
      quoted = !quoted;
    } else {
      words.back() += c;
    }
  }
  return words;
}

// The settings of `outrider serve WORDS`. Our own arguments are taken apart as the command line does.
Result<Settings> serve_settings(const std::vector<std::string>& words) {
  OUTRIDER_TRY(const Arguments arguments, translate_arguments(Command::kServe, words));
  GivenOptions given;
  given.command = Command::kServe;
  given.foreign = arguments.foreign;
  given.spelling = arguments.spelling;
  for (size_t i = 0; i < arguments.own.size(); ++i) {
    const std::string& word = arguments.own[i];
    if (!word.starts_with("--")) {
      given.command_line["model"] = {word};
      continue;
    }
    const size_t equals = word.find('=');
    const std::string name = word.substr(2, equals == std::string::npos ? equals : equals - 2);
    const auto is_row = [&](const OptionRow& row) {
      return row.name == name && row.belongs_to(Command::kServe);
    };
    const auto row = std::ranges::find_if(option_table(), is_row);
    if (row == option_table().end()) return usage_error("unknown option '--" + name + "'");
    std::vector<std::string>& values = given.command_line[name];
    if (row->type() != OptionType::kTextList) values.clear();
    values.push_back(equals == std::string::npos ? arguments.own[++i] : word.substr(equals + 1));
  }
  return resolve_settings(given);
}

std::string tree_text(const TreeOptions& tree) {
  return fmt::format("tree {} {} {} {} {}", static_cast<int>(tree.kind), tree.dynamic_tree_max_top_k,
                     tree.max_total_draft_tokens, tree.choices, static_cast<int>(tree.children));
}

std::string schedule_text(const SpeculativeOptions& options) {
  std::string text;
  for (const BatchDraftLen& row : options.draft_len_by_batch)
    text += fmt::format("{}:{} ", row.sequences, row.max_draft_len);
  return text;
}

std::string speculation_text(const SpeculativeOptions& options) {
  std::vector<int> combined;
  for (const Method method : options.combine) combined.push_back(static_cast<int>(method));
  const auto& [window, ngram, verified] = options.lookahead;
  return fmt::format(
      "method {} {} {}, levels {} {}, {}, model {}, auto {}, stop {}, window {} {}, layers {}, ngram {} {} "
      "{}, "
      "suffix {} {} {} {}, lookahead {} {} {}, relaxed {} {} {}",
      static_cast<int>(options.decoding_type), combined, options.method_unset, options.max_draft_len,
      schedule_text(options), tree_text(options.tree), options.speculative_model.string(), options.is_auto,
      options.stop.assistant_confidence_threshold, options.acceptance_window,
      options.acceptance_length_threshold, options.eagle3_layers_to_capture,
      options.ngram.max_matching_ngram_size, options.ngram.is_public_pool, options.ngram.max_pool_patterns,
      options.suffix.max_tree_depth, options.suffix.max_cached_requests, options.suffix.max_spec_factor,
      options.suffix.min_token_prob, window, ngram, verified, options.relaxed.for_thinking,
      options.relaxed.top_k, options.relaxed.delta);
}

std::string text_of(const Settings& settings) {
  const EngineOptions& engine = settings.engine;
  return fmt::format(
      "model {}, ctx {}, batch {} {}, ranks {} {}, threads {}, weights {}, cache {}, page {}, {}:{}, {}, "
      "layers "
      "{} {}\n{}",
      engine.model.string(), engine.context, engine.max_batch, engine.max_batch_rows, engine.tensor_parallel,
      engine.pipeline_parallel, engine.threads, static_cast<int>(engine.weights),
      static_cast<int>(engine.kv_cache_type), engine.page_size, settings.server.host, settings.server.port,
      fmt::join(settings.server.model_names, ","), engine.gpu_layers.value_or(-2),
      engine.cpu_experts.value_or(-2), speculation_text(engine.speculation));
}

struct PeerConfig {
  fs::path path;
  std::string same_as;  // our own arguments; empty: an error is expected
  std::string error;    // a part of the message
  int lines = 0;        // lines about names without effect
  std::string body;
};

PeerConfig read_peer_config(const fs::path& path) {
  PeerConfig config{.path = path, .same_as = {}, .error = {}, .body = {}};
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("# same as: ")) config.same_as = line.substr(11);
    if (line.starts_with("# error: ")) config.error = line.substr(9);
    if (line.starts_with("# lines: ")) config.lines = std::stoi(line.substr(9));
    if (!line.starts_with('#')) config.body += line + "\n";
  }
  return config;
}

std::vector<std::string> words_of(const PeerConfig& config) {
  if (config.path.extension() == ".yaml") return {"--extra_llm_api_options", config.path.string()};
  if (config.path.extension() == ".json") return {"--speculative-config", config.body};
  return shell_words(config.body);
}

std::vector<PeerConfig> peer_configs() {
  std::vector<PeerConfig> configs;
  for (const auto& entry : fs::directory_iterator(OUTRIDER_SOURCE_DIR "/tests/data/peer_configs"))
    configs.push_back(read_peer_config(entry.path()));
  return configs;
}

int lines_without_effect(const Settings& settings) {
  const auto says_so = [](const std::string& line) {
    return line.find("no effect here: ") != std::string::npos;
  };
  return static_cast<int>(std::ranges::count_if(settings.warnings, says_so));
}

TEST(ForeignNames, ConfigurationsOfTheOthersDocumentationAreRead) {
  int count = 0;
  for (const PeerConfig& config : peer_configs()) {
    SCOPED_TRACE(config.path.filename().string());
    ++count;
    const auto settings = serve_settings(words_of(config));
    if (!config.error.empty()) {
      ASSERT_FALSE(settings.ok());
      EXPECT_NE(settings.error().message.find(config.error), std::string::npos) << settings.error().message;
      EXPECT_EQ(settings.error().message.find('\n'), std::string::npos);
      continue;
    }
    if (!settings.ok()) {
      ADD_FAILURE() << settings.error().message;
      continue;
    }
    const auto own = serve_settings(shell_words(config.same_as));
    ASSERT_TRUE(own.ok()) << own.error().message;
    EXPECT_EQ(text_of(*settings), text_of(*own));
    EXPECT_EQ(lines_without_effect(*settings), config.lines);
    EXPECT_EQ(lines_without_effect(*own), 0);
  }
  EXPECT_GE(count, 70);
}

TEST(ForeignNames, EveryRowNamesAnOptionOrAKeyOrSaysWhyItHasNoEffect) {
  const auto is_option = [](std::string_view name) {
    return std::ranges::any_of(option_table(), [&](const OptionRow& row) { return row.name == name; });
  };
  const auto is_key = [](std::string_view name) {
    return std::ranges::any_of(speculative_key_table(),
                               [&](const SpeculativeKey& key) { return key.name == name; });
  };
  for (const ForeignName& name : foreign_options()) {
    const std::string_view key = speculative_key_of(name);
    EXPECT_TRUE(name.here.empty() || (key.empty() ? is_option(name.here) : is_key(key))) << name.names;
    EXPECT_TRUE(!name.here.empty() || !name.remark.empty()) << name.names;
    EXPECT_TRUE(name.here.empty() || !name.is_refused) << name.names;
  }
  for (const ForeignName& name : foreign_keys()) {
    EXPECT_TRUE(name.here.empty() || is_key(name.here)) << name.names;
    EXPECT_EQ(name.here.empty(), !name.remark.empty()) << name.names;
  }
}

// The names of all options of a server, as tests/data/foreign_options lists them.
std::vector<std::string> option_names(const fs::path& path) {
  std::vector<std::string> names;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with('#')) continue;
    std::istringstream words(line);
    for (std::string word; words >> word;) names.push_back(word);
  }
  return names;
}

bool is_own_of_serve(const std::string& name) {
  if (name == "--help" || name == "-h") return true;  // of every command
  return std::ranges::any_of(option_table(), [&](const OptionRow& row) {
    return row.belongs_to(Command::kServe) && "--" + std::string(row.name) == name;
  });
}

// An option that is in no table would end the server with "unknown option".
TEST(ForeignNames, EveryOptionOfLlamaServerAndVllmIsKnown) {
  size_t count = 0;
  for (const auto& entry : fs::directory_iterator(OUTRIDER_SOURCE_DIR "/tests/data/foreign_options")) {
    for (const std::string& name : option_names(entry.path())) {
      ++count;
      const ForeignName* row = find_foreign(foreign_options(), name);
      const bool is_served = row != nullptr && (!row->remark.empty() || !speculative_key_of(*row).empty() ||
                                                is_own_of_serve("--" + std::string(row->here)));
      EXPECT_TRUE(is_served || is_own_of_serve(name)) << entry.path().filename() << ": " << name;
    }
  }
  EXPECT_GE(count, 700u);
}

TEST(ForeignNames, EveryOptionOfSpeculationOfEachSystemHasAState) {
  std::set<std::string_view> systems;
  size_t count = 0;
  for (const PeerOptions& list : peer_options()) {
    systems.insert(list.system);
    for (const std::string_view names : split(list.options, ' ')) {
      for (const std::string_view name : split(names, '|')) {
        ++count;
        EXPECT_TRUE(state_here(list, name)) << list.system << " " << list.version << ": " << name;
      }
    }
  }
  EXPECT_EQ(systems.size(), 5u);
  EXPECT_GE(count, 350u);
}

TEST(ForeignNames, StatesSayWhatAnOptionIsHere) {
  const PeerOptions sglang = {.system = "SGLang", .version = "0", .kind = PeerKind::kOption, .options = {}};
  EXPECT_EQ(state_here(sglang, "--speculative-dflash-block-size"), "key `draft_block_size`");
  EXPECT_EQ(state_here(sglang, "--spec-method"), std::nullopt);  // of vLLM
  PeerOptions vllm = {.system = "vLLM", .version = "0", .kind = PeerKind::kKey, .options = {}};
  EXPECT_EQ(state_here(vllm, "fly_window_size"), "refused: its rule would change the output");
  EXPECT_EQ(state_here(vllm, "no_such_key"), std::nullopt);
  vllm.kind = PeerKind::kMethod;
  EXPECT_EQ(state_here(vllm, "qwen3_5_mtp"), "method `MTP`");
  EXPECT_EQ(state_here(vllm, "extract_hidden_states"),
            "refused: it drafts nothing; drafters in Python read the states");
  EXPECT_EQ(state_here(vllm, "no_such_method"), std::nullopt);
}

TEST(ForeignNames, RefusalsSayWhy) {
  const auto refused = serve_settings({"--lora-init-without-apply", "--model", "m"});
  ASSERT_FALSE(refused.ok());
  EXPECT_TRUE(
      refused.error().message.starts_with("--lora-init-without-apply: is not supported here: write --lora"))
      << refused.error().message;
  const auto off =
      serve_settings({"--no-enable-sleep-mode", "--no-tokens-only", "--no-enable-dbo", "--model", "m"});
  ASSERT_TRUE(off.ok()) << off.error().message;
  EXPECT_EQ(lines_without_effect(*off), 3);
}

TEST(ForeignNames, ValuesOfTheOthersAreRead) {
  const auto settings = serve_settings({"m",
                                        "--dtype",
                                        "half",
                                        "--max-model-len",
                                        "8k",
                                        "--served-model-name",
                                        "a",
                                        "b",
                                        "--no-webui",
                                        "--cache-prompt",
                                        "--fit",
                                        "on",
                                        "--allowed-origins",
                                        "[\"https://a.example\", \"*\"]",
                                        "--uds",
                                        "x.sock",
                                        "--api-prefix",
                                        "/llm/",
                                        "-s",
                                        "7",
                                        "--reasoning",
                                        "off",
                                        "-n",
                                        "64",
                                        "--cudagraph-capture-sizes",
                                        "1",
                                        "2",
                                        "4"});
  ASSERT_TRUE(settings.ok()) << settings.error().message;
  EXPECT_EQ(settings->engine.model, "m");
  EXPECT_EQ(settings->engine.weights, WeightPrecision::kAuto);
  EXPECT_EQ(settings->engine.context, 8000);
  EXPECT_EQ(settings->server.model_names, (std::vector<std::string>{"a", "b"}));
  EXPECT_FALSE(settings->server.has_chat_page);
  EXPECT_EQ(settings->server.cors_origins, (std::vector<std::string>{"https://a.example", "*"}));
  EXPECT_EQ(settings->server.host, "x.sock");
  EXPECT_EQ(settings->server.root_path, "/llm");
  EXPECT_EQ(settings->server.default_max_tokens, 64);
  EXPECT_EQ(settings->chat.think, "off");
  EXPECT_EQ(lines_without_effect(*settings), 5);  // --dtype, --cache-prompt, --fit, -s, the sizes
  for (const std::string tokens : {"64", "0", "-1"})
    EXPECT_EQ(serve_settings({"--reasoning-budget", tokens})->chat.think, tokens);
  EXPECT_EQ(serve_settings({"--reasoning-budget-message", "So."})->chat.thinking_message, "So.");
  EXPECT_EQ(serve_settings({"--top-nsigma", "1.5"})->request.sampling.top_n_sigma, 1.5);
  EXPECT_EQ(serve_settings({"--max-model-len", "auto"})->engine.context, 0);
  EXPECT_EQ(serve_settings({"--ctx", "8K"})->engine.context, 8192);
  EXPECT_FALSE(serve_settings({"--ctx", "8x"}).ok());
  EXPECT_FALSE(serve_settings({"--cors-origin", "localhost"}).ok());
}

TEST(ForeignNames, NoNameStandsInTwoRows) {
  for (const auto names : {foreign_options(), foreign_keys()}) {
    for (const ForeignName& name : names) {
      for (const std::string_view there : split(name.names, '|'))
        EXPECT_EQ(find_foreign(names, there), &name) << there;
    }
  }
}

TEST(ForeignNames, LayersOnDevicesAreNamedAsInLlamaCpp) {
  const auto same = [](const std::vector<std::string>& there, const std::vector<std::string>& here) {
    const auto found = serve_settings(there), expected = serve_settings(here);
    ASSERT_TRUE(found.ok() && expected.ok());
    EXPECT_EQ(text_of(*found), text_of(*expected));
  };
  same({"-ngl", "20"}, {"--gpu-layers", "20"});
  same({"--n-gpu-layers", "-1"}, {"--gpu-layers", "all"});
  same({"-ngl", "auto"}, {});
  same({"--cpu-moe"}, {"--cpu-experts", "all"});
  same({"--n-cpu-moe", "7"}, {"--cpu-experts", "7"});
  EXPECT_NE(text_of(*serve_settings({"-ngl", "20"})), text_of(*serve_settings({})));
  EXPECT_NE(text_of(*serve_settings({"--cpu-moe"})), text_of(*serve_settings({})));
}

TEST(Arguments, OwnOptionsComeFirstAndKeepTheirValues) {
  const auto arguments = translate_arguments(
      Command::kGenerate,
      std::vector<std::string>{"-p", "-np", "--max_tokens", "-dev", "-dev", "99", "m", "--seed=3"});
  ASSERT_TRUE(arguments.ok()) << arguments.error().message;
  EXPECT_EQ(arguments->own, (std::vector<std::string>{"-p", "-np", "--max-tokens", "-dev", "m", "--seed=3"}));
  ASSERT_EQ(arguments->foreign.size(), 1u);
  EXPECT_EQ(arguments->foreign[0].place, "-dev");
}

TEST(Arguments, WordsThatAreGivenByNameKeepTheirOrder) {
  const auto arguments = translate_arguments(
      Command::kBatch, std::vector<std::string>{"--model", "m", "-o", "out", "-i", "in", "--ctx=99"});
  ASSERT_TRUE(arguments.ok()) << arguments.error().message;
  EXPECT_EQ(arguments->own, (std::vector<std::string>{"in", "-o", "out", "--ctx=99", "m"}));
}

TEST(Arguments, OptionsOfTrtllmBenchAreRead) {
  const std::vector<std::string> words = {"--model",        "m", "--dataset",  "set.jsonl",
                                          "--num_requests", "9", "--warmup",   "2",
                                          "--concurrency",  "8", "--streaming"};
  const auto batch = translate_arguments(Command::kBenchBatch, words);
  ASSERT_TRUE(batch.ok()) << batch.error().message;
  EXPECT_EQ(batch->own, (std::vector<std::string>{"m", "--prompts=set.jsonl", "--limit=9", "--batch=8"}));
  EXPECT_EQ(batch->foreign.size(), 2u);
  const auto refused = translate_arguments(Command::kBench, std::vector<std::string>{"--report_json", "r"});
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("--json prints the report"), std::string::npos);
}

TEST(Arguments, NamesOfAnotherCommandsOptionsStayUnknown) {
  const auto arguments =
      translate_arguments(Command::kTokenize, std::vector<std::string>{"--temp", "0.5", "--", "-c"});
  ASSERT_TRUE(arguments.ok());
  EXPECT_EQ(arguments->own, (std::vector<std::string>{"--temp", "0.5", "--", "-c"}));
}

TEST(Arguments, MessagesNameTheOptionAsItWasGiven) {
  const auto error = [](const std::vector<std::string>& words) {
    const auto settings = serve_settings(words);
    return settings.ok() ? "accepted" : settings.error().message;
  };
  EXPECT_TRUE(error({"-c", "many"}).starts_with("-c: expected a whole number")) << error({"-c", "many"});
  EXPECT_TRUE(error({"-ngl"}).starts_with("-ngl: expected a value")) << error({"-ngl"});
  EXPECT_NE(
      error({"--spec-type", "ngram-simple", "--draft-max", "x"}).find("--draft-max: max_draft_len: expected"),
      std::string::npos);
}

TEST(Arguments, TheCommandLineComesBeforeTheFile) {
  const fs::path file = OUTRIDER_SOURCE_DIR "/tests/data/peer_configs/trtllm_ngram.yaml";
  const auto settings = serve_settings({"--config", file.string(), "--draft-max", "7"});
  ASSERT_TRUE(settings.ok()) << settings.error().message;
  EXPECT_EQ(settings->engine.speculation.decoding_type, Method::kNGram);
  EXPECT_EQ(settings->engine.speculation.max_draft_len, 7);
}

TEST(ForeignReference, DocumentationIsCurrent) {
  std::ifstream file(OUTRIDER_SOURCE_DIR "/docs/reference/coming_from.md");
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), foreign_reference())
      << "run: outrider options foreign > docs/reference/coming_from.md";
}

// A method that is named in prose is out of date when the next one comes.
TEST(ForeignReference, ProseListsNoMethods) {
  std::istringstream lines(foreign_reference());
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("|")) continue;
    for (const MethodRow& row : method_table())
      EXPECT_EQ(line.find("`" + std::string(row.name) + "`"), std::string::npos) << line;
  }
}

}  // namespace
}  // namespace outrider
