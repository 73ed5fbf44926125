# SPDX-License-Identifier: Apache-2.0
"""The forms in which model families write calls, each with a small template of our own and the texts of a model that
calls `weather` in five turns and then answers with an object."""

import dataclasses
import json

FIRST, STEP = 1600, 520  # lengths of the prompts: before the first call, and more for each result
TURNS = [[1], [2, 3], [4], [5], [6]]  # days, the last argument, of the calls of each turn
ANSWER = {"city": "Bonn", "days": 6}
CHATML = dict(turn="<|im_start|>{}\n", end="<|im_end|>\n", marks=["<|im_start|>"], stop="<|im_end|>")


@dataclasses.dataclass
class Form:
    turn: str = "<|{}|>\n"  # the beginning of a message
    assistant: str = None  # the beginning of the assistant's, if it is another
    result: str = "tool"  # the role of a result
    end: str = ""  # the end of a message
    stop: str = "<|end|>"  # the token that ends an answer
    marks: list = dataclasses.field(default_factory=list)  # control tokens
    opening: str = ""  # ends the prompt
    thought: str = ""  # the model's thinking
    final: str = ""  # comes before the last answer
    open: str = ""  # around all calls of a turn
    close: str = ""
    call_open: str = ""  # around each call
    call_close: str = ""
    between: str = ""
    before_name: str = ""
    after_name: str = ""
    after_call: str = ""
    numbered: bool = False
    # Arguments that are no JSON.
    before_key: str = None
    after_key: str = ""
    after_text_key: str = None  # for texts, if different
    after_value: str = ""
    separator: str = ""
    quote: str = ""
    words: tuple = ("true", "false")
    parallel: bool = True
    shows_tools: bool = True

    def value(self, value):
        if isinstance(value, str):
            return self.quote + value + self.quote
        return self.words[0 if value else 1] if isinstance(value, bool) else json.dumps(value)

    def arguments(self, arguments):
        if self.before_key is None:
            return json.dumps(arguments)
        return self.separator.join(
            self.before_key + key + (self.text_key() if isinstance(value, str) else self.after_key) + self.value(value) +
            self.after_value for key, value in arguments.items())

    def text_key(self):
        return self.after_key if self.after_text_key is None else self.after_text_key

    def assistant_turn(self):
        return self.turn.format("assistant") if self.assistant is None else self.assistant

    def calls(self, days):
        written = [self.call_open + self.before_name + "weather" + (f":{number}" if self.numbered else "") + self.after_name +
                   self.arguments(arguments_of(day)) + self.after_call + self.call_close for number, day in enumerate(days)]
        return self.open + self.between.join(written) + self.close

    def turns(self):
        return TURNS if self.parallel else [[day] for turn in TURNS for day in turn][:5]

    def scripts(self):
        """{length of the prompt: text}"""
        scripts, results = {}, 0
        for days in self.turns():
            scripts[FIRST + STEP * results] = self.thought + self.calls(days)
            results += len(days)
        scripts[FIRST + STEP * results] = self.thought + self.final + json.dumps(ANSWER)
        return scripts

    def template(self):
        parts = {"{{" + name + "}}": json.dumps(text, ensure_ascii=False) for name, text in {
            "open": self.open, "close": self.close, "call_open": self.call_open + self.before_name,
            "after_name": self.after_name, "after_call": self.after_call + self.call_close, "between": self.between,
            "before_key": self.before_key or "", "after_key": self.after_key, "after_text_key": self.text_key(),
            "after_value": self.after_value, "separator": self.separator, "quote": self.quote, "true": self.words[0],
            "false": self.words[1], "user": self.turn.format("user"), "system": self.turn.format("system"),
            "assistant": self.assistant_turn(), "result": self.turn.format(self.result), "end": self.end,
            "opening": self.assistant_turn() + self.opening}.items()}
        parts |= {"{{number}}": "':' ~ loop.index0" if self.numbered else "''",
                  "{{json}}": "true" if self.before_key is None else "false",
                  "{{marks}}": json.dumps([*self.marks, self.stop], ensure_ascii=False),
                  "{{length}}": f"{FIRST} + {STEP} * ns.results",
                  "{{tools}}": "tools" if self.shows_tools else "false"}
        text = TEMPLATE if self.shows_tools else TEMPLATE_WITHOUT_CALLS
        for name, part in parts.items():
            text = text.replace(name, part)
        return text


COUNT = """{%- set body = conversation() -%}
{%- set ns.tokens = body | length -%}
{%- for mark in {{marks}} -%}
{%- set ns.tokens = ns.tokens - (body.split(mark) | length - 1) * (mark | length - 1) -%}
{%- endfor -%}
{%- for place in range({{length}} - ns.tokens) %}.{% endfor -%}
{{- body -}}
"""
TEMPLATE = """{%- set ns = namespace(results=0, tokens=0) -%}
{%- macro value(v) -%}
{%- if v is string -%}{{- {{quote}} ~ v ~ {{quote}} -}}
{%- elif v is boolean -%}{{- {{true}} if v else {{false}} -}}
{%- else -%}{{- v | tojson -}}{%- endif -%}
{%- endmacro -%}
{%- macro arguments(all) -%}
{%- if {{json}} -%}{{- all | tojson -}}
{%- else -%}
{%- for key, v in all.items() -%}
{{- ({{separator}} if not loop.first else '') ~ {{before_key}} ~ key ~ ({{after_text_key}} if v is string else {{after_key}}) ~ value(v) ~ {{after_value}} -}}
{%- endfor -%}
{%- endif -%}
{%- endmacro -%}
{%- macro conversation() -%}
{%- if {{tools}} -%}{{- {{system}} ~ (tools | tojson) ~ {{end}} -}}{%- endif -%}
{%- for m in messages -%}
{%- if m.role == 'tool' -%}{%- set ns.results = ns.results + 1 -%}{{- {{result}} ~ m.content ~ {{end}} -}}
{%- elif m.role == 'assistant' -%}
{{- {{assistant}} ~ (m.content or '') -}}
{%- if m.tool_calls -%}
{{- {{open}} -}}
{%- for c in m.tool_calls -%}
{{- ({{between}} if not loop.first else '') ~ {{call_open}} ~ c.function.name ~ {{number}} ~ {{after_name}} ~ arguments(c.function.arguments) ~ {{after_call}} -}}
{%- endfor -%}
{{- {{close}} -}}
{%- endif -%}
{{- {{end}} -}}
{%- elif m.role == 'system' -%}{{- {{system}} ~ m.content ~ {{end}} -}}
{%- else -%}{{- {{user}} ~ m.content ~ {{end}} -}}{%- endif -%}
{%- endfor -%}
{{- {{opening}} -}}
{%- endmacro -%}
""" + COUNT
TEMPLATE_WITHOUT_CALLS = """{%- set ns = namespace(results=0, tokens=0) -%}
{%- macro conversation() -%}
{%- for m in messages -%}
{%- set ns.results = ns.results + (m.content.split('Result of ') | length - 1) -%}
{{- {{user}} ~ m.role ~ m.content ~ {{end}} -}}
{%- endfor -%}
{{- {{opening}} -}}
{%- endmacro -%}
""" + COUNT


def arguments_of(day):
    return {"city": "Bonn, {x}" if day == 4 else "Bonn", "metric": day % 2 == 0, "days": day}


def tagged(**more):
    return dict(before_key="<parameter=", after_key=">\n", after_value="\n</parameter>\n", **more)


def objects(key="arguments", **more):
    return dict(before_name='{"name": "', after_name=f'", "{key}": ', after_call="}", **more)


def python(**more):
    return dict(after_name="(", after_call=")", before_key="", after_key="=", separator=", ", quote='"',
                words=("True", "False"), **more)


ROLES = [f"<｜{role}｜>" for role in ("system", "user", "assistant", "tool")]
DSML = dict(call_open='<｜DSML｜invoke name="', after_name='">\n', call_close="</｜DSML｜invoke>", between="\n",
            before_key='<｜DSML｜parameter name="', after_key='" string="false">', after_text_key='" string="true">',
            after_value="</｜DSML｜parameter>\n", marks=["｜DSML｜", *ROLES], turn="<｜{}｜>",
            stop="<｜end▁of▁sentence｜>", opening="<think>", thought="Hm.</think>")
DEEPSEEK = dict(turn="<｜{}｜>", stop="<｜end▁of▁sentence｜>", open="<｜tool▁calls▁begin｜>", close="<｜tool▁calls▁end｜>",
                marks=["<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>", "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>",
                       "<｜tool▁sep｜>", *ROLES])
HARMONY = ["<|start|>", "<|message|>", "<|channel|>", "<|constrain|>", "<|return|>", "<|end|>"]

FORMS = {
    "gpt-oss": Form(turn="<|start|>{}<|message|>", assistant="<|start|>assistant", end="<|end|>", stop="<|call|>", marks=HARMONY, parallel=False,
                    thought="<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant",
                    final="<|channel|>final<|message|>", call_open="<|channel|>commentary to=functions.",
                    after_name=" <|constrain|>json<|message|>"),
    "MiniMax M2": Form(**tagged(open="<minimax:tool_call>\n", close="\n</minimax:tool_call>", between="\n",
                                call_open='<invoke name="', after_name='">\n', call_close="</invoke>",
                                stop="[e~[", marks=["<minimax:tool_call>", "</minimax:tool_call>"], opening="<think>\n",
                                thought="Hm.\n</think>\n\n") | dict(before_key='<parameter name="', after_key='">',
                                                                  after_value="</parameter>\n")),
    "DeepSeek V4": Form(open="\n\n<｜DSML｜tool_calls>\n", close="\n</｜DSML｜tool_calls>", **DSML),
    "DeepSeek V3.2": Form(open="\n\n<｜DSML｜function_calls>\n", close="\n</｜DSML｜function_calls>", **DSML),
    "DeepSeek V3.1": Form(before_name="<｜tool▁call▁begin｜>", after_name="<｜tool▁sep｜>", after_call="<｜tool▁call▁end｜>",
                          **DEEPSEEK),
    "DeepSeek R1": Form(before_name="<｜tool▁call▁begin｜>function<｜tool▁sep｜>", after_name="\n```json\n", between="\n",
                        after_call="\n```<｜tool▁call▁end｜>", opening="<think>\n", thought="Hm.\n</think>\n\n", **DEEPSEEK),
    "Gemma 4": Form(turn="<|turn>{}\n", assistant="<|turn>model\n", end="<turn|>\n", stop="<turn|>",
                    marks=["<|turn>", "<|tool_call>", "<tool_call|>", '<|"|>'], call_open="<|tool_call>call:",
                    call_close="<tool_call|>", after_name="{", after_call="}", before_key="", after_key=":", separator=",",
                    quote='<|"|>'),
    "Kimi K2": Form(turn="<|im_{}|>", end="<|im_end|>", stop="<|im_end|>", numbered=True,
                    open="<|tool_calls_section_begin|>", close="<|tool_calls_section_end|>",
                    before_name="<|tool_call_begin|>functions.", after_name="<|tool_call_argument_begin|>",
                    after_call="<|tool_call_end|>",
                    marks=["<|tool_calls_section_begin|>", "<|tool_calls_section_end|>", "<|tool_call_begin|>",
                           "<|tool_call_argument_begin|>", "<|tool_call_end|>"]),
    "LFM2": Form(**CHATML | dict(marks=["<|im_start|>", "<|tool_call_start|>", "<|tool_call_end|>"]),
                 **python(open="<|tool_call_start|>[", close="]<|tool_call_end|>", between=", ")),
    "OLMo 3": Form(**CHATML, **python(open="<function_calls>\n", close="\n</function_calls>", between="\n")),
    "Qwen3-Coder": Form(**CHATML, **tagged(call_open="<tool_call>\n<function=", after_name=">\n", between="\n",
                                           call_close="</function>\n</tool_call>", opening="<think>\n",
                                           thought="Hm.\n</think>\n\n")),
    "GLM-4.5": Form(stop="<|user|>", opening="<think>", thought="Hm.</think>\n", call_open="<tool_call>",
                    call_close="</tool_call>", between="\n", after_name="\n", before_key="<arg_key>",
                    after_key="</arg_key>\n<arg_value>", after_value="</arg_value>\n",
                    marks=["<|assistant|>", "<|observation|>", "<tool_call>", "</tool_call>"]),
    "Mistral since 2025": Form(turn="[{}]", end="</s>", stop="</s>", marks=["[TOOL_CALLS]", "[ARGS]", "[CALL_ID]"],
                               call_open="[TOOL_CALLS]", after_name="[ARGS]"),
    "Mistral": Form(turn="[{}]", end="</s>", stop="</s>", marks=["[TOOL_CALLS]", "[AVAILABLE_TOOLS]"],
                    **objects(open="[TOOL_CALLS] [", close="]", between=", ")),
    "Hunyuan": Form(**objects(open="<tool_calls>[", close="]</tool_calls>", between=", ")),
    "Phi-4-mini": Form(marks=["<|tool|>", "<|tool_call|>", "<|/tool_call|>"],
                       **objects(open="<|tool_call|>[", close="]<|/tool_call|>", between=", ")),
    "Granite 3": Form(turn="<|start_of_role|>{}<|end_of_role|>", end="<|end_of_text|>", stop="<|end_of_text|>",
                      marks=["<|start_of_role|>", "<|end_of_role|>", "<|tool_call|>"],
                      **objects(open="<|tool_call|>[", close="]", between=", ")),
    "Hermes": Form(**CHATML, **objects(call_open="<tool_call>\n", call_close="\n</tool_call>", between="\n")),
    "Llama 4": Form(turn="<|header_start|>{}<|header_end|>\n\n", end="<|eot|>", stop="<|eot|>",
                    marks=["<|header_start|>", "<|header_end|>", "<|python_start|>"],
                    **python(open="[", close="]", between=", ")),
    "Llama 3": Form(turn="<|start_header_id|>{}<|end_header_id|>\n\n", end="<|eot_id|>", stop="<|eot_id|>",
                    marks=["<|start_header_id|>", "<|end_header_id|>", "<|python_tag|>"],
                    **objects("parameters", between="; ")),
    "GLM-4": Form(stop="<|observation|>", turn="<|{}|>", result="observation", marks=["<|assistant|>", "<|user|>"], opening="\n",
                  between="<|assistant|>", after_name="\n", final=""),
    "plain": Form(**CHATML | dict(shows_tools=False, parallel=False), **objects(between="\n")),
}
