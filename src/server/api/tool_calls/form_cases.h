// SPDX-License-Identifier: Apache-2.0
// Calls as the model of each family writes them.
#pragma once

namespace outrider {

// A form: the published source, by its commit; a small template with its marks, and an answer. The answer
// calls add(a=1, s="x, \"y\" {z}") after the text "So.", where a text may stand there, and then now().
struct FormCase {
  const char* name;
  const char* chat_template;
  const char* answer;
  const char* text = "So.";
};

inline constexpr FormCase kFormCases[] = {
    // openai/harmony 20cd04c, the format
    {"harmony", "<|start|>assistant<|channel|>analysis<|message|>",
     "<|channel|>commentary<|message|>So.<|end|><|start|>assistant<|channel|>commentary to=functions.add "
     "<|constrain|>json<|message|>{\"a\": 1, \"s\": \"x, \\\"y\\\" {z}\"}<|call|><|start|>assistant "
     "to=functions.now<|channel|>commentary json<|message|>{}<|call|>"},
    // ggml-org/llama.cpp a21f05a unsloth-MiniMax-M2.jinja
    {"minimax", "<minimax:tool_call><invoke name=\"f\"><parameter name=\"k\">",
     "So.\n<minimax:tool_call>\n<invoke name=\"add\">\n<parameter name=\"a\">1</parameter>\n<parameter "
     "name=\"s\">x, \"y\" {z}</parameter>\n</invoke>\n<invoke "
     "name=\"now\">\n</invoke>\n</minimax:tool_call>"},
    // ggml-org/llama.cpp a20c1a8 gemma4.jinja
    {"gemma4", "<|turn>model <|tool_call>call:f{}<tool_call|>",
     "So.<|tool_call>call:add{a:1,s:<|\"|>x, \"y\" {z}<|\"|>}<tool_call|><|tool_call>call:now{}<tool_call|>"},
    // ggml-org/llama.cpp 02f4a63 moonshotai-Kimi-K2.jinja
    {"kimi_k2", "<|tool_calls_section_begin|><|tool_call_begin|>",
     "So.<|tool_calls_section_begin|><|tool_call_begin|>functions.add:0<|tool_call_argument_begin|>{\"a\": "
     "1, "
     "\"s\": \"x, \\\"y\\\" {z}\"}<|tool_call_end|><|tool_call_begin|>functions.now:1"
     "<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>"},
    // vllm-project/vllm 80b25c6 tool_chat_template_deepseekr1.jinja
    {"deepseek", "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>NAME```json",
     "So.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>add\n```json\n{\"a\": 1, \"s\": "
     "\"x, \\\"y\\\" "
     "{z}\"}\n```<｜tool▁call▁end｜>\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>now\n```json\n{}\n```"
     "<｜tool▁call▁end｜><｜tool▁calls▁end｜>"},
    // ggml-org/llama.cpp 0374c5b deepseek-ai-DeepSeek-V3.1.jinja
    {"deepseek_v31", "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>NAME<｜tool▁sep｜>ARGUMENTS",
     "So.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>add<｜tool▁sep｜>{\"a\": 1, \"s\": \"x, \\\"y\\\" {z}\"}"
     "<｜tool▁call▁end｜><｜tool▁call▁begin｜>now<｜tool▁sep｜>{}<｜tool▁call▁end｜><｜tool▁calls▁end｜>"},
    // hiyouga/LLaMA-Factory 924ec6b deepseek_v4_dsml_chat_template.jinja
    {"deepseek_v4", "<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"$NAME\">",
     "So.\n\n<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"add\">\n<｜DSML｜parameter name=\"a\" "
     "string=\"false\">1</｜DSML｜parameter>\n<｜DSML｜parameter name=\"s\" string=\"true\">x, \"y\" "
     "{z}</｜DSML｜parameter>\n</｜DSML｜invoke>\n<｜DSML｜invoke name=\"now\">\n\n</｜DSML｜invoke>\n"
     "</｜DSML｜tool_calls>"},
    // ggml-org/llama.cpp 7086532 DeepSeek-V3.2.jinja
    {"deepseek_v32", "{% set dsml_token = '｜DSML｜' %}<{{ dsml_token }}function_calls>",
     "So.\n\n<｜DSML｜function_calls>\n<｜DSML｜invoke name=\"add\">\n<｜DSML｜parameter name=\"a\" "
     "string=\"false\">1</｜DSML｜parameter>\n<｜DSML｜parameter name=\"s\" string=\"true\">x, \"y\" "
     "{z}</｜DSML｜parameter>\n</｜DSML｜invoke>\n<｜DSML｜invoke name=\"now\">\n</｜DSML｜invoke>\n"
     "</｜DSML｜function_calls>"},
    // ggml-org/llama.cpp 6f4e9f5 LFM2.5-8B-A1B.jinja
    {"lfm2", "List of tools: <|tool_list_start|>[]<|tool_list_end|>",
     "So.<|tool_call_start|>[add(a=1, s='x, \"y\" {z}'), now()]<|tool_call_end|>"},
    // vllm-project/vllm 2e30b47 tool_chat_template_olmo3.jinja
    {"olmo3", "<functions>[]</functions> <function_calls>f(a=1)</function_calls>",
     "So.\n\n<function_calls>\nadd(a=1, s=\"x, \\\"y\\\" {z}\")\nnow()\n</function_calls>"},
    // vllm-project/vllm 7a3bde4 tool_chat_template_qwen3coder.jinja
    {"qwen3_coder", "<tool_call><function=f><parameter=k>",
     "So.\n<tool_call>\n<function=add>\n<parameter=a>\n1\n</parameter>\n<parameter=s>\nx, \"y\" "
     "{z}\n</parameter>"
     "\n</function>\n</tool_call>\n<tool_call>\n<function=now>\n</function>\n</tool_call>"},
    // ggml-org/llama.cpp afefa65 GLM-4.6.jinja
    {"glm", "<tool_call>name<arg_key>k</arg_key>",
     "So.\n<tool_call>add\n<arg_key>a</arg_key>\n<arg_value>1</arg_value>\n<arg_key>s</"
     "arg_key>\n<arg_value>x, "
     "\"y\" {z}</arg_value>\n</tool_call><tool_call>now</tool_call>"},
    // ikawrakow/ik_llama.cpp e0596bf GLM-4.7-Flash.jinja
    {"glm", "<tool_call>{function-name}<arg_key>",
     "So.<tool_call>add<arg_key>a</arg_key><arg_value>1</arg_value><arg_key>s</arg_key><arg_value>x, \"y\" "
     "{z}</arg_value></tool_call><tool_call>now</tool_call>"},
    // mistralai, by ye-NX/llama.cpp b354d7c Mistral-Small-3.2-24B-Instruct-2506.jinja
    {"mistral_args", "[AVAILABLE_TOOLS][TOOL_CALLS]f[ARGS]{}",
     "So.[TOOL_CALLS]add[CALL_ID]a1b2c3d4e[ARGS]{\"a\": 1, \"s\": \"x, \\\"y\\\" "
     "{z}\"}[TOOL_CALLS]now[ARGS]{}"},
    // vllm-project/vllm a204e40 tool_chat_template_mistral.jinja
    {"mistral", "[AVAILABLE_TOOLS][TOOL_CALLS]",
     "So.[TOOL_CALLS] [{\"name\": \"add\", \"arguments\": {\"a\": 1, \"s\": \"x, \\\"y\\\" {z}\"}, \"id\": "
     "\"aB3dE6gH9\"}, "
     "{\"name\": \"now\", \"arguments\": {}, \"id\": \"abcdefghi\"}]"},
    // vllm-project/vllm e5fa945 tool_chat_template_minimax_m1.jinja
    {"tool_calls", "<tool_calls>{}</tool_calls>",
     "So.\n<tool_calls>\n{\"name\": \"add\", \"arguments\": {\"a\": 1, \"s\": \"x, \\\"y\\\" "
     "{z}\"}}\n{\"name\": "
     "\"now\", \"arguments\": {}}\n</tool_calls>"},
    // vllm-project/vllm 1adeccc tool_chat_template_granite.jinja
    {"granite", "respond with <|tool_call|> and a list",
     "So.<|tool_call|>[{\"name\": \"add\", \"arguments\": {\"a\": 1, \"s\": \"x, \\\"y\\\" {z}\"}}, "
     "{\"name\": "
     "\"now\", \"arguments\": {}}]"},
    // vllm-project/vllm 07b1349 tool_chat_template_phi4_mini.jinja
    {"phi4_mini", "<|system|><|tool|>[]<|/tool|> respond with <|tool_call|>",
     "So.<|tool_call|>[{\"name\": \"add\", \"arguments\": {\"a\": 1, \"s\": \"x, \\\"y\\\" {z}\"}}, "
     "{\"name\": "
     "\"now\", \"arguments\": {}}]<|/tool_call|>"},
    // vllm-project/vllm f73e089 tool_chat_template_hermes.jinja
    {"hermes", "<tool_call>{}</tool_call>",
     "So.\n<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1, \"s\": \"x, \\\"y\\\" "
     "{z}\"}}\n</tool_call>\n"
     "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n</tool_call>"},
    // vllm-project/vllm 5a6541d tool_chat_template_llama4_pythonic.jinja
    {"pythonic", "<|header_start|>assistant<|header_end|>", "[add(a=1, s=\"x, \\\"y\\\" {z}\"), now()]", ""},
    // vllm-project/vllm 3a9445d tool_chat_template_llama3.2_pythonic.jinja
    {"pythonic", "in the format of [func_name1(params_name1=params_value1)]",
     "[add(a=1, s=\"x, \\\"y\\\" {z}\"), now()]", ""},
    // vllm-project/vllm 8a8be3d tool_chat_template_llama3.1_json.jinja
    {"llama3", "<|python_tag|> {\"name\": ..., \"parameters\": ...}",
     "{\"name\": \"add\", \"parameters\": {\"a\": 1, \"s\": \"x, \\\"y\\\" {z}\"}}; {\"name\": \"now\", "
     "\"parameters\": {}}",
     ""},
    // THUDM/GLM-4 3e7735d basic_demo/glm_server.py
    {"glm4", "<|user|><|assistant|>{{ name }}\n{{ arguments }}<|observation|>",
     "\nadd\n{\"a\": 1, \"s\": \"x, \\\"y\\\" {z}\"}<|assistant|>now\n{}", ""},
    {"plain", "",
     "{\"name\": \"add\", \"arguments\": {\"a\": 1, \"s\": \"x, \\\"y\\\" {z}\"}}\n{\"name\": \"now\", "
     "\"arguments\": {}}",
     ""},
};

}  // namespace outrider
