// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "config/option_table.h"

namespace outrider {
namespace {

constexpr std::array kCommands = {
    CommandRow{Command::kGenerate, "generate", "continue a prompt, or answer it"},
    CommandRow{Command::kChat, "chat", "talk to a model that has a chat template"},
    CommandRow{Command::kScore, "score", "log-probability of every token of a text"},
    CommandRow{Command::kTokenize, "tokenize", "text to token ids and back"},
    CommandRow{Command::kInspect, "inspect", "what a model file holds"},
    CommandRow{Command::kBench, "bench", "speed with and without speculation, side by side"},
    CommandRow{Command::kBenchRows, "bench rows", "time of one pass, by its number of rows", "rows"},
    CommandRow{Command::kBenchPrompts, "bench prompts",
               "time to the first token, by the length of the prompt", "prompt-lengths"},
    CommandRow{Command::kBenchBatch, "bench batch", "throughput, by the number of prompts that run at once",
               "batch"},
    CommandRow{Command::kBenchDrafters, "bench drafters", "every drafter that fits a model, in one table",
               "all"},
    CommandRow{Command::kVerifyLossless, "verify-lossless",
               "prove that speculation does not change the output"},
    CommandRow{Command::kDoctor, "doctor", "whether a drafter fits a model, agrees with it and helps"},
    CommandRow{Command::kServe, "serve", "a server for clients of OpenAI's and Anthropic's APIs"},
    CommandRow{Command::kBatch, "batch", "answer a file of requests, many at once"},
    CommandRow{Command::kQuantize, "quantize", "write a model as a smaller .gguf file"},
    CommandRow{Command::kPull, "pull", "fetch a model from the Hugging Face Hub"},
    CommandRow{Command::kModels, "models", "the models on this machine"},
    CommandRow{Command::kRemove, "rm", "remove a model that pull has fetched"},
    CommandRow{Command::kProcesses, "ps", "the servers that run on this machine"},
};

}  // namespace

std::span<const CommandRow> command_table() { return kCommands; }

}  // namespace outrider
