# SPDX-License-Identifier: Apache-2.0
"""Chat templates written for the tests, one per family of constructs, and the conversations to render."""

import chat_templates_dense

TEMPLATES = {}

TEMPLATES["chatml"] = """\
{% for message in messages %}
{% if loop.first and messages[0]['role'] != 'system' %}
{{ '<|im_start|>system\\nAnswer briefly.<|im_end|>\\n' }}
{% endif %}
{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'}}
{% endfor %}
{% if add_generation_prompt %}
{{ '<|im_start|>assistant\\n' }}
{% endif %}
"""

TEMPLATES["zephyr"] = """\
{% for message in messages %}
{% if message['role'] == 'user' %}
{{ '<|user|>\n' + message['content'] + eos_token }}
{% elif message['role'] == 'system' %}
{{ '<|system|>\n' + message['content'] + eos_token }}
{% elif message['role'] == 'assistant' %}
{{ '<|assistant|>\n'  + message['content'] + eos_token }}
{% endif %}
{% if loop.last and add_generation_prompt %}
{{ '<|assistant|>' }}
{% endif %}
{% endfor %}
"""

TEMPLATES["llama2"] = """\
{% if messages[0]['role'] == 'system' %}{% set rest = messages[1:] %}{% set instructions = messages[0]['content'] %}\
{% else %}{% set rest = messages %}{% set instructions = false %}{% endif %}\
{% for message in rest %}\
{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}\
{{ raise_exception('Expected user and assistant in turns') }}\
{% endif %}\
{% if loop.index0 == 0 and instructions != false %}\
{% set content = '<<SYS>>\\n' + instructions + '\\n<</SYS>>\\n\\n' + message['content'] %}\
{% else %}{% set content = message['content'] %}{% endif %}\
{% if message['role'] == 'user' %}{{ bos_token + '[INST] ' + content.strip() + ' [/INST]' }}\
{% elif message['role'] == 'assistant' %}{{ ' '  + content.strip() + ' ' + eos_token }}{% endif %}\
{% endfor %}
"""

TEMPLATES["llama3"] = """\
{% set loop_messages = messages %}{% for message in loop_messages %}\
{% set content = '<|start_header_id|>' + message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' %}\
{% if loop.index0 == 0 %}{% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}\
{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}
"""

TEMPLATES["llama31_tools"] = """\
{{- bos_token }}
{%- if custom_tools is defined %}
    {%- set tools = custom_tools %}
{%- endif %}
{%- if not date_string is defined %}
    {%- if strftime_now is defined %}
        {%- set date_string = strftime_now("%d %b %Y") %}
    {%- else %}
        {%- set date_string = "26 Jul 2024" %}
    {%- endif %}
{%- endif %}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}

{#- The first system message is merged with what the template adds to it. #}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}

{{- "<|start_header_id|>system<|end_header_id|>\\n\\n" }}
{%- if builtin_tools is defined or tools is not none %}
    {{- "Environment: ipython\\n" }}
{%- endif %}
{%- if builtin_tools is defined %}
    {{- "Tools: " + builtin_tools | reject('equalto', 'code_interpreter') | join(", ") + "\\n\\n" }}
{%- endif %}
{{- "Today: " + date_string + "\\n\\n" }}
{%- if tools is not none and not tools_in_user_message %}
    {{- 'Call with {"name": name, "parameters": values}.' }}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- "\\n\\n" }}
    {%- endfor %}
{%- endif %}
{{- system_message }}
{{- "<|eot_id|>" }}

{%- if tools_in_user_message and not tools is none %}
    {%- if messages | length != 0 %}
        {%- set first_user_message = messages[0]['content']|trim %}
        {%- set messages = messages[1:] %}
    {%- else %}
        {{- raise_exception("No first user message to put the tools in!") }}
    {%- endif %}
    {{- '<|start_header_id|>user<|end_header_id|>\\n\\n' -}}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- "\\n\\n" }}
    {%- endfor %}
    {{- first_user_message + "<|eot_id|>"}}
{%- endif %}

{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'+ message['content'] | trim + '<|eot_id|>' }}
    {%- elif 'tool_calls' in message %}
        {%- if not message.tool_calls|length == 1 %}
            {{- raise_exception("Only one tool call at once!") }}
        {%- endif %}
        {%- set tool_call = message.tool_calls[0].function %}
        {%- if builtin_tools is defined and tool_call.name in builtin_tools %}
            {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' -}}
            {{- "<|python_tag|>" + tool_call.name + ".call(" }}
            {%- for arg_name, arg_val in tool_call.arguments | items %}
                {{- arg_name + '="' + arg_val + '"' }}
                {%- if not loop.last %}
                    {{- ", " }}
                {%- endif %}
            {%- endfor %}
            {{- ")" }}
        {%- else  %}
            {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' -}}
            {{- '{"name": "' + tool_call.name + '", ' }}
            {{- '"parameters": ' }}
            {{- tool_call.arguments | tojson }}
            {{- "}" }}
        {%- endif %}
        {%- if builtin_tools is defined %}
            {{- "<|eom_id|>" }}
        {%- else %}
            {{- "<|eot_id|>" }}
        {%- endif %}
    {%- elif message.role == "tool" or message.role == "ipython" %}
        {{- "<|start_header_id|>ipython<|end_header_id|>\\n\\n" }}
        {%- if message.content is mapping or message.content is iterable %}
            {{- message.content | tojson }}
        {%- else %}
            {{- message.content }}
        {%- endif %}
        {{- "<|eot_id|>" }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
"""

TEMPLATES["mistral"] = """\
{%- if messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}
{%- set user_messages = loop_messages | selectattr("role", "equalto", "user") | list %}
{%- set ns = namespace(index=0) %}
{%- for message in loop_messages %}
    {%- if not (message.role == "tool" or message.role == "tool_results" or (message.tool_calls is defined and message.tool_calls is not none)) %}
        {%- if (message["role"] == "user") != (ns.index % 2 == 0) %}
            {{- raise_exception("After the system message, roles must alternate user/assistant/user/assistant/...") }}
        {%- endif %}
        {%- set ns.index = ns.index + 1 %}
    {%- endif %}
{%- endfor %}
{{- bos_token }}
{%- for message in loop_messages %}
    {%- if message["role"] == "user" %}
        {%- if tools is not none and (message == user_messages[-1]) %}
            {{- "[AVAILABLE_TOOLS] [" }}
            {%- for tool in tools %}
                {%- set tool = tool.function %}
                {{- '{"type": "function", "function": {' }}
                {%- for key, val in tool.items() if key != "return" %}
                    {%- if val is string %}
                        {{- '"' + key + '": "' + val + '"' }}
                    {%- else %}
                        {{- '"' + key + '": ' + val|tojson }}
                    {%- endif %}
                    {%- if not loop.last %}
                        {{- ", " }}
                    {%- endif %}
                {%- endfor %}
                {{- "}}" }}
                {%- if not loop.last %}
                    {{- ", " }}
                {%- else %}
                    {{- "]" }}
                {%- endif %}
            {%- endfor %}
            {{- "[/AVAILABLE_TOOLS]" }}
        {%- endif %}
        {%- if loop.last and system_message is defined %}
            {{- "[INST] " + system_message + "\\n\\n" + message["content"] + "[/INST]" }}
        {%- else %}
            {{- "[INST] " + message["content"] + "[/INST]" }}
        {%- endif %}
    {%- elif message.tool_calls is defined and message.tool_calls is not none %}
        {{- "[TOOL_CALLS] [" }}
        {%- for tool_call in message.tool_calls %}
            {%- set out = tool_call.function|tojson %}
            {{- out[:-1] }}
            {%- if not tool_call.id is defined or tool_call.id|length != 9 %}
                {{- raise_exception("Tool call IDs should be alphanumeric strings with length 9!") }}
            {%- endif %}
            {{- ', "id": "' + tool_call.id + '"}' }}
            {%- if not loop.last %}
                {{- ", " }}
            {%- else %}
                {{- "]" + eos_token }}
            {%- endif %}
        {%- endfor %}
    {%- elif message["role"] == "assistant" %}
        {{- " " + message["content"]|trim + eos_token}}
    {%- elif message["role"] == "tool_results" or message["role"] == "tool" %}
        {%- if message.content is defined and message.content.content is defined %}
            {%- set content = message.content.content %}
        {%- else %}
            {%- set content = message.content %}
        {%- endif %}
        {{- '[TOOL_RESULTS] {"content": ' + content|string + ", " }}
        {{- '"call_id": "' + (message.tool_call_id or "none") + '"}[/TOOL_RESULTS]' }}
    {%- else %}
        {{- raise_exception("Only user, assistant and tool roles are supported!") }}
    {%- endif %}
{%- endfor %}
"""

TEMPLATES["qwen25_tools"] = """\
{%- macro tool_list(tools) %}
    {%- for tool in tools %}
        {{- "\\n" }}
        {{- tool | tojson }}
    {%- endfor %}
{%- endmacro %}
{%- macro header(role, newline=true) -%}
    {{ '<|im_start|>' + role }}{{ '\\n' if newline }}
{%- endmacro %}
{%- if tools %}
    {{- header('system') }}
    {%- if messages[0]['role'] == 'system' %}
        {{- messages[0]['content'] }}
    {%- else %}
        {{- 'You answer with care.' }}
    {%- endif %}
    {{- "\\n\\n# Tools\\n<tools>" ~ tool_list(tools) ~ "\\n</tools>\\n" }}
    {{- "Return <tool_call>\\n{\\"name\\": <name>, \\"arguments\\": <object>}\\n</tool_call><|im_end|>\\n" }}
{%- else %}
    {%- if messages[0]['role'] == 'system' %}
        {{- header('system') + messages[0]['content'] + '<|im_end|>\\n' }}
    {%- else %}
        {{- header('system') + 'You answer with care.<|im_end|>\\n' }}
    {%- endif %}
{%- endif %}
{%- for message in messages %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) or (message.role == "assistant" and not message.tool_calls) %}
        {{- header(message.role) + message.content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {{- header(message.role, newline=false) }}
        {%- if message.content %}
            {{- '\\n' + message.content }}
        {%- endif %}
        {%- for tool_call in message.tool_calls %}
            {%- if tool_call.function is defined %}
                {%- set tool_call = tool_call.function %}
            {%- endif %}
            {{- '\\n<tool_call>\\n{"name": "' }}
            {{- tool_call.name }}
            {{- '", "arguments": ' }}
            {{- tool_call.arguments | tojson }}
            {{- '}\\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == "tool" %}
        {%- if (loop.index0 == 0) or (messages[loop.index0 - 1].role != "tool") %}
            {{- '<|im_start|>user' }}
        {%- endif %}
        {{- '\\n<tool_response>\\n' }}
        {{- message.content }}
        {{- '\\n</tool_response>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}
            {{- '<|im_end|>\\n' }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}
"""

TEMPLATES["qwen3_thinking"] = """\
{%- set ns = namespace(multi_step_tool=true, last_query_index=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.multi_step_tool and message.role == "user" and message.content is string and not(message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>')) %}
        {%- set ns.multi_step_tool = false %}
        {%- set ns.last_query_index = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.content is string %}
        {%- set content = message.content %}
    {%- else %}
        {%- set content = '' %}
    {%- endif %}
    {%- if message.role == "assistant" %}
        {%- set reasoning_content = '' %}
        {%- if message.reasoning_content is string %}
            {%- set reasoning_content = message.reasoning_content %}
        {%- else %}
            {%- if '</think>' in content %}
                {%- set reasoning_content = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
                {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
            {%- endif %}
        {%- endif %}
        {%- if loop.index0 > ns.last_query_index %}
            {%- if loop.last or (not loop.last and reasoning_content) %}
                {{- '<|im_start|>' + message.role + '\\n<think>\\n' + reasoning_content.strip('\\n') + '\\n</think>\\n\\n' + content.lstrip('\\n') }}
            {%- else %}
                {{- '<|im_start|>' + message.role + '\\n' + content }}
            {%- endif %}
        {%- else %}
            {{- '<|im_start|>' + message.role + '\\n' + content }}
        {%- endif %}
        {%- if message.tool_calls %}
            {%- for tool_call in message.tool_calls %}
                {%- if (loop.first and content) or (not loop.first) %}
                    {{- '\\n' }}
                {%- endif %}
                {%- if tool_call.function %}
                    {%- set tool_call = tool_call.function %}
                {%- endif %}
                {{- '<tool_call>\\n{"name": "' }}
                {{- tool_call.name }}
                {{- '", "arguments": ' }}
                {%- if tool_call.arguments is string %}
                    {{- tool_call.arguments }}
                {%- else %}
                    {{- tool_call.arguments | tojson }}
                {%- endif %}
                {{- '}\\n</tool_call>' }}
            {%- endfor %}
        {%- endif %}
        {{- '<|im_end|>\\n' }}
    {%- else %}
        {{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>' + '\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}
"""

TEMPLATES["deepseek"] = """\
{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %}\
{% set ns = namespace(is_first=false, is_tool=false, is_output_first=true, system_prompt='', is_first_sp=true) %}\
{%- for message in messages %}{%- if message['role'] == 'system' %}\
{%- if ns.is_first_sp %}{% set ns.system_prompt = ns.system_prompt + message['content'] %}{% set ns.is_first_sp = false %}\
{%- else %}{% set ns.system_prompt = ns.system_prompt + '\\n\\n' + message['content'] %}{%- endif %}{%- endif %}{%- endfor %}\
{{ bos_token }}{{ ns.system_prompt }}\
{%- for message in messages %}\
{%- if message['role'] == 'user' %}{%- set ns.is_tool = false -%}{{'<｜User｜>' + message['content']}}{%- endif %}\
{%- if message['role'] == 'assistant' and 'tool_calls' in message %}{%- set ns.is_tool = false -%}\
{%- for tool in message['tool_calls'] %}{%- if not ns.is_first %}\
{{'<｜Assistant｜><｜calls｜>' + (message['content'] or '') + tool['type'] + '<｜sep｜>' + tool['function']['name'] + '\\n```json\\n' + tool['function']['arguments']|tojson + '\\n```'}}\
{%- set ns.is_first = true -%}{%- else %}\
{{'\\n' + tool['type'] + '<｜sep｜>' + tool['function']['name']}}{%- endif %}{%- endfor %}{{'<｜end｜>'}}{%- endif %}\
{%- if message['role'] == 'assistant' and 'tool_calls' not in message %}\
{%- if ns.is_tool %}{{'<｜outputs_end｜>' + message['content'] + '<｜eos｜>'}}{%- set ns.is_tool = false -%}\
{%- else %}{% set content = message['content'] %}{% if '</think>' in content %}{% set content = content.split('</think>')[-1] %}{% endif %}\
{{'<｜Assistant｜>' + content + '<｜eos｜>'}}{%- endif %}{%- endif %}\
{%- if message['role'] == 'tool' %}{%- set ns.is_tool = true -%}\
{%- if ns.is_output_first %}{{'<｜outputs｜>' + message['content'] }}{%- set ns.is_output_first = false %}\
{%- else %}{{'\\n' + message['content'] }}{%- endif %}{%- endif %}{%- endfor -%}\
{% if ns.is_tool %}{{'<｜outputs_end｜>'}}{% endif %}\
{% if add_generation_prompt and not ns.is_tool %}{{'<｜Assistant｜><think>\\n'}}{% endif %}
"""

TEMPLATES["schema_macros"] = """\
{%- macro type_name(schema, indent=0) -%}
    {%- if schema.type == 'array' -%}
        list[{{ type_name(schema['items'], indent) }}]
    {%- elif schema.type == 'object' and schema.properties -%}
        {{ '{' }}
        {%- for name, inner in schema.properties|dictsort %}
            {{- '\\n' + '  ' * (indent + 1) + name + ('?' if name not in (schema.required or []) else '') + ': ' }}
            {{- type_name(inner, indent=indent + 1) }}
        {%- endfor %}
        {{- '\\n' + '  ' * indent + '}' }}
    {%- elif schema.enum is defined -%}
        {{ schema.enum | map('tojson') | join(' | ') }}
    {%- else -%}
        {{ {'string': 'str', 'number': 'float', 'integer': 'int', 'boolean': 'bool'}.get(schema.type, 'any') }}
    {%- endif -%}
{%- endmacro -%}
{%- macro block(title) %}## {{ title|title }}
{{ caller(title|length) }}
{% endmacro -%}
{% for tool in tools or [] %}
{% set function = tool.function if tool.function is defined else tool %}
{% call(width) block(function.name|replace('_', ' ')) -%}
{{ '-' * width }} {{ function.description | default('no description', true) | indent(2) }}
{{- ' ' ~ type_name(function.parameters) }}
{%- endcall %}
{% else %}
no tools
{% endfor %}
{% filter upper %}{% for message in messages %}{% if message.role == 'system' %}{% continue %}{% endif %}
{% if loop.index > 3 %}{% break %}{% endif %}
{{ loop.index }}:{{ message.role }};
{%- endfor %}{% endfilter %}
{% set summary %}
{% for role, count in roles.items() if count > 0 %}{{ role }}={{ count }}{{ ', ' if not loop.last }}{% endfor %}
{% endset %}
[{{ summary | trim }}]
{% generation %}{{ messages[-1].content or '' }}{% endgeneration %}
"""
TEMPLATES |= chat_templates_dense.TEMPLATES

USER = {"role": "user", "content": "What is 2 + 2?"}
SPACED = {"role": "user", "content": "  Grüße,\n\n\"quoted\" <|im_end|> 'text' \t"}
SYSTEM = {"role": "system", "content": " You are terse. "}
ASSISTANT = {"role": "assistant", "content": "4"}
THINKING = {"role": "assistant", "content": "<think>\nTwo and two.\n</think>\n\nIt is 4."}
REASONED = {"role": "assistant", "content": "It is 4.", "reasoning_content": "\nAdding.\n"}
CALL = {
    "role": "assistant",
    "content": "",
    "tool_calls": [
        {
            "id": "abcdef123",
            "type": "function",
            "function": {"name": "get_weather", "arguments": {"city": "Zürich", "days": 3, "units": None}},
        }
    ],
}
TWO_CALLS = {
    "role": "assistant",
    "content": "Let me look.",
    "tool_calls": CALL["tool_calls"]
    + [{"id": "abcdef124", "type": "function", "function": {"name": "search", "arguments": {"q": "a \"b\""}}}],
}
RESULT = {"role": "tool", "name": "get_weather", "content": "sunny, 21.5", "tool_call_id": "abcdef123"}
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Weather of a city.\nSeveral days.",
        "parameters": {
            "type": "object",
            "properties": {
                "units": {"type": "string", "enum": ["C", "F"]},
                "city": {"type": "string", "description": "Name & <country>"},
                "days": {"type": "array", "items": {"type": "integer"}},
            },
            "required": ["city"],
        },
        "return": {"type": "number"},
    },
}
NO_PARAMETERS = {
    "type": "function",
    "function": {"name": "now", "description": "", "parameters": {"type": "object", "properties": {}}},
}

CONVERSATIONS = {
    "one question": [USER],
    "system first": [SYSTEM, USER],
    "several turns": [SYSTEM, USER, ASSISTANT, SPACED],
    "ends with the assistant": [USER, THINKING, SPACED, REASONED],
    "thinking in the past": [SYSTEM, USER, THINKING, USER],
    "tool call and result": [USER, CALL, RESULT],
    "result answered": [USER, CALL, RESULT, ASSISTANT, SPACED],
    "two calls and results": [USER, TWO_CALLS, RESULT, RESULT],
    "two users in a row": [USER, SPACED],
    "assistant first": [ASSISTANT, USER],
    "only a system message": [SYSTEM],
    "no messages": [],
}

PARTS = {"role": "user", "content": [{"type": "text", "text": " What is "}, {"type": "image"}, {"type": "text", "text": "this?\n"}]}

EXTRAS = {
    "gemma": [("parts", {"messages": [PARTS]})],
    "ministral": [("parts", {"messages": [SYSTEM, PARTS]})],
    "smollm3": [
        ("no thinking", {"messages": [USER, ASSISTANT, USER], "enable_thinking": False, "add_generation_prompt": True}),
        ("flag in the system message", {"messages": [{"role": "system", "content": "Short. /no_think "}, USER]}),
        ("override", {"messages": [{"role": "system", "content": "/system_override Pirate."}, USER]}),
    ],
    "granite": [("documents", {"messages": [USER], "documents": [{"title": "a", "text": "b"}]})],
    "llama31_tools": [
        ("date given", {"messages": [USER], "date_string": "1 Jan 2025"}),
        ("tools in the user message", {"messages": [SYSTEM, USER], "tools": [WEATHER], "tools_in_user_message": True}),
        ("built-in tools", {"messages": [USER], "tools": None, "builtin_tools": ["search", "code_interpreter"]}),
    ],
    "qwen3_thinking": [
        ("thinking off", {"messages": [USER], "enable_thinking": False, "add_generation_prompt": True}),
        ("thinking on", {"messages": [USER], "enable_thinking": True, "add_generation_prompt": True}),
    ],
}


def contexts(family):
    """Returns (name, variables) of every rendering of a family's template."""
    tokens = {"bos_token": "<s>", "eos_token": "</s>"}
    shared = {"roles": {"user": 2, "system": 0, "assistant": 1}, "tools": None, "documents": None}
    for name, messages in CONVERSATIONS.items():
        for prompt in (False, True):
            suffix = ", prompt" if prompt else ""
            yield name + suffix, shared | tokens | {"messages": messages, "add_generation_prompt": prompt}
    for name in ("one question", "tool call and result", "two calls and results"):
        messages = CONVERSATIONS[name]
        tools = {"messages": messages, "tools": [WEATHER, NO_PARAMETERS], "add_generation_prompt": True}
        yield name + ", tools", shared | tokens | tools
    for name, variables in EXTRAS.get(family, []):
        yield name, shared | tokens | {"add_generation_prompt": False} | variables
