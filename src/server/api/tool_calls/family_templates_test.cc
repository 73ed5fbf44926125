// SPDX-License-Identifier: Apache-2.0
// The forms of each family that we list, recognised by the marks in its published template.
#include <gtest/gtest.h>

#include "server/api/tool_calls/call_forms.h"
#include "server/api/tool_calls/thinking.h"

namespace outrider {
namespace {

// `marks`: what the template contains of the marks of all forms. `thinking`: the mark that begins thinking.
struct FamilyTemplate {
  const char* family;
  const char* source;  // repository, commit, file
  const char* marks;
  const char* form;
  const char* thinking = "";
};

constexpr FamilyTemplate kFamilyTemplates[] = {
    {"Llama 2", "chujiezheng/chat_templates 3182b3f llama-2-chat.jinja", "[INST] <<SYS>> [/INST]", "plain"},
    {"Llama 3", "chujiezheng/chat_templates 3182b3f llama-3-instruct.jinja",
     "<|start_header_id|> <|end_header_id|>", "plain"},
    {"Llama 3.1", "ikawrakow/ik_llama.cpp d7882c3 meta-llama-Llama-3.1-8B-Instruct.jinja",
     R"({"name": function name, "parameters": <|python_tag|>)", "llama3"},
    {"Llama 3.2", "ikawrakow/ik_llama.cpp d7882c3 meta-llama-Llama-3.2-3B-Instruct.jinja",
     R"({"name": function name, "parameters": dictionary)", "llama3"},
    {"Llama 3.2 in Python", "vllm-project/vllm 3a9445d tool_chat_template_llama3.2_pythonic.jinja",
     "<|start_header_id|> [func_name1(params_name1=params_value1)]", "pythonic"},
    {"Llama 3.3", "ikawrakow/ik_llama.cpp d7882c3 meta-llama-Llama-3.3-70B-Instruct.jinja",
     R"({"name": function name, "parameters": <|python_tag|>)", "llama3"},
    {"Llama 4", "vllm-project/vllm 5a6541d tool_chat_template_llama4_pythonic.jinja",
     "<|header_start|> <|python_start|> [func_name1(", "pythonic"},
    {"SmolLM3", "ikawrakow/ik_llama.cpp e0596bf HuggingFaceTB-SmolLM3-3B.jinja",
     "<|im_start|> <think> </think>", "plain", "<think>"},
    {"Mistral", "chujiezheng/chat_templates fb629a0 mistral-instruct.jinja", "[INST] [/INST]", "plain"},
    {"Mistral Nemo", "ikawrakow/ik_llama.cpp d7882c3 mistralai-Mistral-Nemo-Instruct-2407.jinja",
     "[AVAILABLE_TOOLS] [TOOL_CALLS] [TOOL_RESULTS]", "mistral"},
    {"Devstral", "ikawrakow/ik_llama.cpp d7882c3 unsloth-mistral-Devstral-Small-2507.jinja",
     "[AVAILABLE_TOOLS] [TOOL_CALLS] [ARGS]", "mistral_args"},
    {"Ministral 3", "ikawrakow/ik_llama.cpp ab1d740 mistralai-Ministral-3-14B-Reasoning-2512.jinja",
     "[THINK] [/THINK] [TOOL_CALLS] [ARGS]", "mistral_args", "[THINK]"},
    {"Qwen2.5", "ikawrakow/ik_llama.cpp d7882c3 Qwen-Qwen2.5-7B-Instruct.jinja", "<tool_call> </tool_call>",
     "hermes"},
    {"Qwen3", "ikawrakow/ik_llama.cpp d7882c3 Qwen-Qwen3-0.6B.jinja",
     "<tool_call> </tool_call> <think> </think>", "hermes", "<think>"},
    {"Qwen3-Coder", "google/minja 021c229 Qwen-Qwen3-Coder-30B-A3B-Instruct.jinja",
     "<tool_call> <function= <parameter= </parameter>", "qwen3_coder"},
    {"Qwen3.5", "ikawrakow/ik_llama.cpp e0596bf Qwen3.5-4B.jinja",
     "<tool_call> <function= <parameter= </think>", "qwen3_coder", "<think>"},
    {"Phi-3", "chujiezheng/chat_templates 670a2eb phi-3.jinja", "<|user|> <|end|> <|assistant|>", "plain"},
    {"Phi-3.5", "ikawrakow/ik_llama.cpp d7882c3 microsoft-Phi-3.5-mini-instruct.jinja",
     "<|system|> <|user|> <|end|> <|assistant|>", "plain"},
    {"Phi-4-mini", "ggml-org/llama.cpp 6d7822c llama-cpp-microsoft-Phi-4-mini-instruct.jinja",
     "<|system|> <|tool|> <|/tool|> <|tool_call|>", "phi4_mini"},
    {"Gemma 2", "ikawrakow/ik_llama.cpp d7882c3 google-gemma-2-2b-it.jinja", "<start_of_turn> <end_of_turn>",
     "plain"},
    {"Gemma 3 in Python", "vllm-project/vllm c6991a3 tool_chat_template_gemma3_pythonic.jinja",
     "<start_of_turn> [func_name1(params_name1=params_value1)]", "pythonic"},
    {"Gemma 4", "ikawrakow/ik_llama.cpp e0596bf google-gemma-4-31B-it.jinja",
     "<|turn> <|tool> <|tool_call> <tool_call|> <|channel>thought <channel|>", "gemma4", "<|channel>thought"},
    {"OLMo 3", "vllm-project/vllm 2e30b47 tool_chat_template_olmo3.jinja", "<functions> <function_calls>",
     "olmo3"},
    {"Granite 3.0", "chujiezheng/chat_templates 5529727 granite-3.0-instruct.jinja",
     "available_tools<|end_of_role|> <|tool_call|>", "granite"},
    {"Granite 3.3", "ikawrakow/ik_llama.cpp d7882c3 ibm-granite-granite-3.3-2B-Instruct.jinja",
     "available_tools<|end_of_role|> <|tool_call|>", "granite"},
    {"GLM-4", "THUDM/GLM-4 3e7735d basic_demo/glm_server.py", "<|observation|> <|assistant|>", "glm4"},
    {"GLM-4.5", "ggml-org/llama.cpp 623f3dd glm_4_5.jinja", "<tool_call> <arg_key> <|observation|> </think>",
     "glm", "<think>"},
    {"GLM-4.6", "ikawrakow/ik_llama.cpp 2ebd715 GLM-4.6.jinja",
     "<tool_call> <arg_key> <|observation|> </think>", "glm", "<think>"},
    {"GLM-4.7-Flash", "ikawrakow/ik_llama.cpp e0596bf GLM-4.7-Flash.jinja",
     "<tool_call> <arg_key> <|observation|> </think>", "glm", "<think>"},
    {"gpt-oss", "ikawrakow/ik_llama.cpp d7882c3 openai-gpt-oss-120b.jinja",
     "<|start|> <|channel|> <|message|> <|call|>", "harmony", "<|channel|>analysis<|message|>"},
    {"DeepSeek R1", "ikawrakow/ik_llama.cpp e0596bf deepseek-ai-DeepSeek-R1-Distill-Qwen-32B.jinja",
     "</think> <｜tool▁calls▁begin｜> ```json", "deepseek", "<think>"},
    {"DeepSeek V3", "vllm-project/vllm c6991a3 tool_chat_template_deepseekv3.jinja",
     "<｜tool▁calls▁begin｜> <｜tool▁sep｜> ```json", "deepseek"},
    {"DeepSeek V3.1", "ggml-org/llama.cpp 0374c5b deepseek-ai-DeepSeek-V3.1.jinja",
     "</think> <｜tool▁calls▁begin｜> <｜tool▁sep｜>", "deepseek_v31", "<think>"},
    {"DeepSeek V3.2", "ggml-org/llama.cpp 7086532 DeepSeek-V3.2.jinja", "</think> ｜DSML｜ function_calls>",
     "deepseek_v32", "<think>"},
    {"DeepSeek V4", "ikawrakow/ik_llama.cpp 6b55d2c deepseek-ai-DeepSeek-V4.jinja",
     "</think> ｜DSML｜ tool_calls>", "deepseek_v4", "<think>"},
    {"LFM2", "ikawrakow/ik_llama.cpp e0596bf LFM2-8B-A1B.jinja",
     "<|tool_list_start|> <|tool_response_start|>", "lfm2"},
    {"Kimi K2", "ggml-org/llama.cpp 02f4a63 moonshotai-Kimi-K2.jinja",
     "<|im_middle|> <|tool_calls_section_begin|> <|tool_call_argument_begin|>", "kimi_k2"},
    {"Kimi K2 Thinking", "ikawrakow/ik_llama.cpp 15695a0 Kimi-K2-Thinking.jinja",
     "<|im_middle|> <|tool_calls_section_begin|> </think>", "kimi_k2", "<think>"},
    {"MiniMax M2", "ggml-org/llama.cpp a21f05a unsloth-MiniMax-M2.jinja",
     "<minimax:tool_call> <invoke name=\" <parameter name=\" </think>", "minimax", "<think>"},
    {"MiniMax M1", "vllm-project/vllm e5fa945 tool_chat_template_minimax_m1.jinja", "<tool_calls>",
     "tool_calls"},
    {"Hunyuan", "vllm-project/vllm 630fe7e tool_chat_template_hunyuan_a13b.jinja", "<tool_calls> </think>",
     "tool_calls", "<think>"},
    {"Hermes 3", "ikawrakow/ik_llama.cpp d7882c3 NousResearch-Hermes-3-Llama-3.1-8B-tool_use.jinja",
     "<tools> <tool_call> </tool_call>", "hermes"},
    {"Falcon", "chujiezheng/chat_templates 3182b3f falcon-instruct.jinja", "User: Assistant:", "plain"},
};

TEST(FamilyTemplates, AreRecognised) {
  for (const FamilyTemplate& one : kFamilyTemplates) {
    const CallForm* form = find_call_form(one.marks, nullptr);
    EXPECT_EQ(form == nullptr ? plain_call_form().name : form->name, one.form)
        << one.family << ": " << one.source;
    const ThinkingForm* thinking = find_thinking_form(one.marks, "");
    EXPECT_EQ(thinking == nullptr ? "" : thinking->open, one.thinking) << one.family << ": " << one.source;
  }
}

}  // namespace
}  // namespace outrider
