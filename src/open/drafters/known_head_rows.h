// SPDX-License-Identifier: Apache-2.0
// Written by tools/refresh_known_heads.py from the Hub's API, by target and repository.
#pragma once

#include <array>

#include "open/drafters/known_head.h"

namespace outrider {

// clang-format off
inline constexpr std::array kKnownHeadRows = {
    KnownHead{"HuggingFaceH4/zephyr-7b-beta", "FasterDecoding/medusa-1.0-zephyr-7b-beta", "medusa"},
    KnownHead{"Qwen/Qwen2-72B-Instruct", "yuhuili/EAGLE-Qwen2-72B-Instruct", "eagle"},
    KnownHead{"Qwen/Qwen2-7B-Instruct", "yuhuili/EAGLE-Qwen2-7B-Instruct", "eagle"},
    KnownHead{"Qwen/Qwen3-1.7B", "AngelSlim/Qwen3-1.7B_eagle3", "eagle3"},
    KnownHead{"Qwen/Qwen3-14B", "RedHatAI/Qwen3-14B-speculator.eagle3", "eagle3"},
    KnownHead{"Qwen/Qwen3-14B", "AngelSlim/Qwen3-14B_eagle3", "eagle3"},
    KnownHead{"Qwen/Qwen3-30B-A3B", "AngelSlim/Qwen3-a3B_eagle3", "eagle3"},
    KnownHead{"Qwen/Qwen3-30B-A3B", "Tengyunw/qwen3_30b_moe_eagle3", "eagle3"},
    KnownHead{"Qwen/Qwen3-32B", "RedHatAI/Qwen3-32B-speculator.eagle3", "eagle3"},
    KnownHead{"Qwen/Qwen3-32B", "AngelSlim/Qwen3-32B_eagle3", "eagle3"},
    KnownHead{"Qwen/Qwen3-4B", "AngelSlim/Qwen3-4B_eagle3", "eagle3"},
    KnownHead{"Qwen/Qwen3-4B", "z-lab/Qwen3-4B-DFlash-b16", "dflash"},
    KnownHead{"Qwen/Qwen3-8B", "RedHatAI/Qwen3-8B-speculator.eagle3", "eagle3"},
    KnownHead{"Qwen/Qwen3-8B", "AngelSlim/Qwen3-8B_eagle3", "eagle3"},
    KnownHead{"Qwen/Qwen3-8B", "Tengyunw/qwen3_8b_eagle3", "eagle3"},
    KnownHead{"Qwen/Qwen3-8B", "z-lab/Qwen3-8B-DFlash-b16", "dflash"},
    KnownHead{"deepseek-ai/DeepSeek-R1-Distill-Llama-8B", "yuhuili/EAGLE3-DeepSeek-R1-Distill-LLaMA-8B", "eagle3"},
    KnownHead{"google/gemma-4-E2B-it", "gg-hf-am/gemma-4-E2B-it-assistant", "assistant"},
    KnownHead{"lmsys/vicuna-13b-v1.3", "yuhuili/EAGLE3-Vicuna1.3-13B", "eagle3"},
    KnownHead{"lmsys/vicuna-13b-v1.3", "FasterDecoding/medusa-vicuna-13b-v1.3", "medusa"},
    KnownHead{"lmsys/vicuna-33b-v1.3", "yuhuili/EAGLE-Vicuna-33B-v1.3", "eagle"},
    KnownHead{"lmsys/vicuna-33b-v1.3", "FasterDecoding/medusa-vicuna-33b-v1.3", "medusa"},
    KnownHead{"lmsys/vicuna-7b-v1.3", "yuhuili/EAGLE-Vicuna-7B-v1.3", "eagle"},
    KnownHead{"lmsys/vicuna-7b-v1.3", "FasterDecoding/medusa-vicuna-7b-v1.3", "medusa"},
    KnownHead{"meta-llama/Llama-2-13b-chat-hf", "yuhuili/EAGLE-llama2-chat-13B", "eagle"},
    KnownHead{"meta-llama/Llama-2-70b-chat-hf", "yuhuili/EAGLE-llama2-chat-70B", "eagle"},
    KnownHead{"meta-llama/Llama-2-7b-chat-hf", "yuhuili/EAGLE-llama2-chat-7B", "eagle"},
    KnownHead{"meta-llama/Llama-3.1-8B-Instruct", "RedHatAI/Llama-3.1-8B-Instruct-speculator.eagle3", "eagle3"},
    KnownHead{"meta-llama/Llama-3.1-8B-Instruct", "yuhuili/EAGLE3-LLaMA3.1-Instruct-8B", "eagle3"},
    KnownHead{"meta-llama/Llama-3.1-8B-Instruct", "yuhuili/EAGLE-LLaMA3.1-Instruct-8B", "eagle"},
    KnownHead{"meta-llama/Llama-3.3-70B-Instruct", "RedHatAI/Llama-3.3-70B-Instruct-speculator.eagle3", "eagle3"},
    KnownHead{"meta-llama/Llama-3.3-70B-Instruct", "yuhuili/EAGLE3-LLaMA3.3-Instruct-70B", "eagle3"},
    KnownHead{"meta-llama/Meta-Llama-3-70B-Instruct", "yuhuili/EAGLE-LLaMA3-Instruct-70B", "eagle"},
    KnownHead{"meta-llama/Meta-Llama-3-8B-Instruct", "yuhuili/EAGLE-LLaMA3-Instruct-8B", "eagle"},
    KnownHead{"meta-llama/Meta-Llama-3-8B-Instruct", "huawei-noah/MOASpec-Llama-3-8B-Instruct", "moa"},
    KnownHead{"mistralai/Mixtral-8x7B-Instruct-v0.1", "yuhuili/EAGLE-mixtral-instruct-8x7B", "eagle"},
    KnownHead{"openai/gpt-oss-120b", "nvidia/gpt-oss-120b-Eagle3", "eagle3"},
    KnownHead{"openai/gpt-oss-20b", "RedHatAI/gpt-oss-20b-speculator.eagle3", "eagle3"},
};
// clang-format on

}  // namespace outrider
