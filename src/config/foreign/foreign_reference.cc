// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "config/foreign/foreign_names.h"
#include "config/foreign/peer_options.h"
#include "config/option_value.h"

namespace outrider {
namespace {

constexpr std::string_view kIntroductionText =
    "# Coming from another system?\n\n"
    "<!-- Written by `outrider options foreign`; change src/config/foreign/ instead. -->\n\n"
    "Configuration files and command lines of TensorRT-LLM, vLLM, llama.cpp and SGLang are read as they are. "
    "Names\n"
    "with a counterpart work. Names without a meaning here are taken with a line on standard error that "
    "says so.\n"
    "Names that would change the output, or promise what is not here, are refused with a reason. On a "
    "command "
    "line `-`\n"
    "and `_` are the same, and `--no-` may stand before a flag that is no option here. Names that are the "
    "same here "
    "are in\n"
    "[options.md](options.md).\n\n"
    "| there | here |\n|---|---|\n"
    "| `trtllm-serve MODEL --config FILE` (or `--extra_llm_api_options FILE`) | `outrider serve MODEL "
    "--config "
    "FILE` |\n"
    "| `trtllm-bench --model MODEL throughput --dataset FILE --concurrency 8` | `outrider bench throughput "
    "--model "
    "MODEL --dataset FILE --concurrency 8` |\n"
    "| `trtllm-bench --model MODEL latency --config FILE` | `outrider bench latency --model MODEL --config "
    "FILE` "
    "|\n"
    "| `vllm serve MODEL --speculative-config JSON` (or `--speculative-config.KEY VALUE`) | `outrider serve "
    "MODEL "
    "--speculative-config JSON` (or `--speculative-config.KEY VALUE`) |\n"
    "| `vllm run-batch -i FILE -o OUT --model MODEL` | `outrider batch -i FILE -o OUT --model MODEL` |\n"
    "| `llama-server -m MODEL -md DRAFT -c 8192 -np 4` | `outrider serve -m MODEL -md DRAFT -c 8192 -np 4` "
    "|\n"
    "| `python -m sglang.launch_server --model MODEL --speculative-algorithm EAGLE3 ...` | `outrider serve "
    "--model MODEL --speculative-algorithm EAGLE3 ...` |\n"
    "| `from tensorrt_llm.llmapi import LLM, ...` | the same, after `import outrider.compat.tensorrt_llm` "
    "([Python](../guides/python.md)) |\n"
    "| `from vllm import LLM, SamplingParams` | `from outrider import LLM, SamplingParams` |\n\n"
    "The [methods](options.md#methods) are found by the names that each system gives them; the table there "
    "has "
    "them.\nWhere a name stands for several methods, the files of the drafter decide.\n";

struct SystemText {
  std::string_view name;
  std::string_view text;
};
constexpr SystemText kSystems[] = {
    {"TensorRT-LLM",
     "The keys of its YAML file, and the options of `trtllm-serve`. A block `speculative_config:` is one of "
     "these\nkeys. Values of `decoding_type` that are not among the [methods](options.md#methods) are "
     "errors.\n"},
    {"vLLM",
     "The options of `vllm serve`, also as keys of its YAML file, and the keys of `--speculative-config`. A "
     "range of\n`num_speculative_tokens_per_batch_size` may not depend on the length of the context.\n"},
    {"llama.cpp",
     "The options of `llama-server`. `-c` is the length of one text here, and of all slots together "
     "there.\n"},
    {"SGLang",
     "The options of `sglang.launch_server`. Its trees are dynamic trees here, and "
     "`--speculative-num-draft-tokens`\ncounts the root of a tree, as it does there.\n"},
    {"transformers",
     "The arguments of `generate()` that have a counterpart, as keys of `--speculative`. "
     "`prompt_lookup_num_tokens=10`\nis `--speculative ngram,max_draft_len=10`. The acceptance rule is "
     "`--acceptance rejection` where texts are sampled\nthere; the default rule here gives the text of plain "
     "decoding with the same seed.\n"},
};

// "a|b" as "`a`, `b`".
std::string as_code(std::string_view names) {
  std::string text;
  for (const std::string_view name : split(names, '|'))
    text += fmt::format("{}`{}`", text.empty() ? "" : ", ", name);
  return text;
}

void add_rows(std::span<const ForeignName> names, std::string_view system, bool is_key, std::string& text) {
  for (const ForeignName& name : names) {
    if (belongs_to_system(name, system))
      text += fmt::format("| {} | {} | {} |\n", as_code(name.names), is_key ? "key" : "option",
                          meaning_here(name, is_key));
  }
}

constexpr std::string_view kEveryOptionText =
    "\n## Speculation, option by option\n\n"
    "`tools/list_peer_options.py` finds these names in the packages of each system, and a test finds each of "
    "them "
    "in the\ntables of this program. *Methods* are the values of `--spec-type`, `method`, `decoding_type` "
    "and\n"
    "`--speculative-algorithm`; *bench* are the options of `trtllm-bench throughput`.\n";

std::string_view kind_text(PeerKind kind) {
  switch (kind) {
    case PeerKind::kOption:
      return "option";
    case PeerKind::kKey:
      return "key";
    case PeerKind::kMethod:
      return "method";
    case PeerKind::kBench:
      return "bench";
  }
  return "";
}

// A table for each system; the lists of a system stand together.
void add_every_option(std::string& text) {
  text += kEveryOptionText;
  std::string_view system;
  for (const PeerOptions& list : peer_options()) {
    if (list.system != system) {
      system = list.system;
      text += fmt::format("\n### {} {}\n\n| there | kind | here |\n|---|---|---|\n", system, list.version);
    }
    for (const std::string_view names : split(list.options, ' ')) {
      const auto state = state_here(list, names.substr(0, names.find('|')));
      text +=
          fmt::format("| {} | {} | {} |\n", as_code(names), kind_text(list.kind), state.value_or("unknown"));
    }
  }
}

}  // namespace

bool belongs_to_system(const ForeignName& name, std::string_view system) {
  const std::vector<std::string_view> systems = split(name.systems, '|');
  return std::find(systems.begin(), systems.end(), system) != systems.end();
}

std::string meaning_here(const ForeignName& name, bool is_key) {
  const std::string_view key = is_key ? name.here : speculative_key_of(name);
  if (name.here.empty()) {
    const std::string only = name.values.empty() ? "" : fmt::format("taken if {}: ", as_code(name.values));
    return fmt::format("{}{}: {}", only, name.is_refused ? "refused" : "no effect", name.remark);
  }
  const std::string values = name.values.empty() ? "" : fmt::format(" ({})", as_code(name.values));
  const std::string remark = name.remark.empty() ? "" : fmt::format("; {}", name.remark);
  return (key.empty() ? fmt::format("`--{}`", name.here) : fmt::format("key `{}`", key)) + values + remark;
}

std::string foreign_reference() {
  std::string text(kIntroductionText);
  for (const SystemText& system : kSystems) {
    text += fmt::format("\n## {}\n\n{}\n| there | kind | here |\n|---|---|---|\n", system.name, system.text);
    add_rows(foreign_options(), system.name, false, text);
    add_rows(foreign_keys(), system.name, true, text);
  }
  add_every_option(text);
  return text;
}

}  // namespace outrider
