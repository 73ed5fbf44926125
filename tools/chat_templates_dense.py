# SPDX-License-Identifier: Apache-2.0
"""Chat templates with the constructs of Gemma, Phi, SmolLM3, Granite, GLM and Ministral, written for the tests."""

TEMPLATES = {}

TEMPLATES["gemma"] = """\
{{ bos_token }}
{%- if messages[0]['role'] == 'system' -%}
    {%- if messages[0]['content'] is string -%}
        {%- set prefix = messages[0]['content'] + '\n\n' -%}
    {%- else -%}
        {%- set prefix = messages[0]['content'][0]['text'] + '\n\n' -%}
    {%- endif -%}
    {%- set turns = messages[1:] -%}
{%- else -%}
    {%- set prefix = "" -%}
    {%- set turns = messages -%}
{%- endif -%}
{%- for message in turns -%}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}
        {{ raise_exception("user and assistant must take turns") }}
    {%- endif -%}
    {%- set role = 'model' if message['role'] == 'assistant' else message['role'] -%}
    {{ '<start_of_turn>' + role + '\n' + (prefix if loop.first else "") }}
    {%- if message['content'] is string -%}
        {{ message['content'] | trim }}
    {%- elif message['content'] is iterable -%}
        {%- for item in message['content'] -%}
            {%- if item['type'] == 'image' -%}{{ '<start_of_image>' }}
            {%- elif item['type'] == 'text' -%}{{ item['text'] | trim }}
            {%- endif -%}
        {%- endfor -%}
    {%- else -%}
        {{ raise_exception("unknown content") }}
    {%- endif -%}
    {{ '<end_of_turn>\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}{{ '<start_of_turn>model\n' }}{%- endif -%}
"""

TEMPLATES["phi"] = """\
{% for message in messages %}{% if (message['role'] == 'system') %}\
{{'<|im_start|>system<|im_sep|>' + message['content'] + '<|im_end|>'}}{% elif (message['role'] == 'user') %}\
{{'<|im_start|>user<|im_sep|>' + message['content'] + '<|im_end|>'}}{% elif (message['role'] == 'assistant') %}\
{{'<|im_start|>assistant<|im_sep|>'}}{% generation %}{{message['content'] + '<|im_end|>'}}{% endgeneration %}{% endif %}\
{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant<|im_sep|>' }}{% else %}{{ eos_token }}{% endif %}
"""

TEMPLATES["smollm3"] = """\
{%- if enable_thinking is not defined -%}{%- set enable_thinking = true -%}{%- endif -%}
{%- set mode = "/think" if enable_thinking else "/no_think" -%}
{%- set today = strftime_now("%d %B %Y") -%}
{%- if messages and messages[0].role == "system" -%}
  {%- set system = messages[0].content -%}
  {%- if "/no_think" in system -%}{%- set mode = "/no_think" -%}
  {%- elif "/think" in system -%}{%- set mode = "/think" -%}{%- endif -%}
  {%- set instructions = system.replace("/no_think", "").replace("/think", "").rstrip() -%}
{%- endif -%}
{{- "<|im_start|>system\n" -}}
{%- if not (instructions and "/system_override" in instructions) -%}
  {{- "## Metadata\n\nDate: " ~ today ~ "\nMode: " ~ mode ~ "\n\n" -}}
{%- endif -%}
{{- (instructions or "Be helpful.") | replace("/system_override", "") | trim -}}
{%- if xml_tools or tools -%}
  {%- set shown = namespace(text="\n\n### Tools\n") -%}
  {%- for tool in xml_tools or tools -%}
    {%- set shown.text = shown.text ~ (tool | string | length > 0) ~ " " ~ (tool.function | tojson) ~ "\n" -%}
  {%- endfor -%}
  {{- shown.text -}}
{%- endif -%}
{{- "<|im_end|>\n" -}}
{%- for message in messages -%}
  {%- set content = message.content if message.content is string else "" -%}
  {%- if message.role == "user" -%}
    {{ "<|im_start|>" + message.role + "\n" + content + "<|im_end|>\n" }}
  {%- elif message.role == "assistant" -%}
    {%- generation -%}
    {%- if mode == "/think" -%}
      {{ "<|im_start|>assistant\n" + content.lstrip("\n") + "<|im_end|>\n" }}
    {%- else -%}
      {{ "<|im_start|>assistant\n<think>\n\n</think>\n" + content.lstrip("\n") + "<|im_end|>\n" }}
    {%- endif -%}
    {%- endgeneration -%}
  {%- elif message.role == "tool" -%}
    {{ "<|im_start|>user\n" + content + "<|im_end|>\n" }}
  {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
  {{ "<|im_start|>assistant\n" if mode == "/think" else "<|im_start|>assistant\n<think>\n\n</think>\n" }}
{%- endif -%}
"""

TEMPLATES["granite"] = """\
{%- set text_of = namespace(tools='Tools in <tools></tools>:\\n<tools>', end='\\n</tools>', system='') -%}
{%- if tools -%}
    {%- for tool in tools -%}
        {%- set text_of.tools = text_of.tools + '\\n' + (tool | tojson) -%}
    {%- endfor -%}
    {%- set text_of.tools = text_of.tools + text_of.end -%}
{%- else -%}
    {%- set text_of.tools = '' -%}
{%- endif -%}
{%- if documents -%}
    {%- for document in documents -%}{{ document | tojson(indent=4) }}{%- endfor -%}
{%- endif -%}
{%- if messages and messages[0].role == 'system' -%}
    {%- if messages[0].content is string -%}
        {%- set text_of.system = messages[0].content -%}
    {%- elif messages[0].content is iterable -%}
        {%- for entry in messages[0].content if entry.type == 'text' -%}
            {%- set text_of.system = text_of.system + ('\\n' if text_of.system | length > 0 else '') + entry.text -%}
        {%- endfor -%}
    {%- endif -%}
    {%- set rest = messages[1:] -%}
{%- else -%}
    {%- set rest = messages -%}
{%- endif -%}
{{- '<|start_of_role|>system<|end_of_role|>' + ([text_of.system, text_of.tools] | select | join('\\n\\n')) + '<|end_of_text|>\\n' -}}
{%- for message in rest -%}
    {%- set content = namespace(text=message.content or '') -%}
    {%- if message.role in ['user', 'system'] -%}
        {{- '<|start_of_role|>' + message.role + '<|end_of_role|>' + content.text + '<|end_of_text|>\\n' -}}
    {%- elif message.role == 'assistant' -%}
        {{- '<|start_of_role|>assistant<|end_of_role|>' + content.text -}}
        {%- for call in message.tool_calls or [] -%}
            {{- ('\\n' if (loop.first and content.text) or not loop.first) -}}
            {%- if call.function -%}{%- set call = call.function -%}{%- endif -%}
            {{- '<tool_call>\\n{"name": "' + call.name + '", "arguments": ' -}}
            {{- call.arguments if call.arguments is string else call.arguments | tojson -}}
            {{- '}\\n</tool_call>' -}}
        {%- endfor -%}
        {{- '<|end_of_text|>\\n' -}}
    {%- elif message.role == 'tool' -%}
        {%- if loop.first or loop.previtem.role != 'tool' -%}{{- '<|start_of_role|>user<|end_of_role|>' -}}{%- endif -%}
        {{- '\\n<tool_response>\\n' + content.text + '\\n</tool_response>' -}}
        {%- if loop.last or loop.nextitem.role != 'tool' -%}{{- '<|end_of_text|>\\n' -}}{%- endif -%}
    {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|start_of_role|>assistant<|end_of_role|>' -}}{%- endif -%}
"""

TEMPLATES["glm4"] = """\
[gMASK]<sop>
{%- if tools -%}
<|system|>
# Tools
{% for tool in tools %}
{%- set function = tool.get("function", tool) %}

## {{ function.name }}

{{ function | tojson(indent=4, ensure_ascii=False) }}
{%- endfor %}
{%- endif -%}
{%- for message in messages -%}
{%- set body = message['content'] if message['content'] is string else message['content'] | map(attribute='text') | join -%}
{%- if message.role == 'system' %}<|system|>
{{ body }}
{%- elif message.role == 'user' %}<|user|>
{{ body }}
{%- elif message.role == 'tool' %}<|observation|>
{{ body }}
{%- elif message.role == 'assistant' -%}
{%- for call in message.tool_calls | default([]) %}<|assistant|>{{ call.function.name }}
{{ call.function.arguments | tojson }}
{%- else %}<|assistant|>
{{ body.split('</think>')[-1].strip() }}
{%- endfor -%}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt %}<|assistant|>
{% endif -%}
"""

TEMPLATES["ministral"] = """\
{%- set today = strftime_now("%Y-%m-%d") %}
{%- set default_system_message = "Today is " + today + ".\n\nAnswer." %}
{{- bos_token }}
{%- if messages and messages[0]['role'] == 'system' %}
    {%- if messages[0]['content'] is string %}
        {%- set system_message = messages[0]['content'] %}
    {%- else %}
        {%- set system_message = messages[0]['content'][0]['text'] %}
    {%- endif %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set system_message = default_system_message %}
    {%- set loop_messages = messages %}
{%- endif %}
{%- if not system_message.endswith('\n') %}{%- set system_message = system_message ~ '' %}{%- endif %}
{{- '[SYSTEM_PROMPT]' + system_message + '[/SYSTEM_PROMPT]' }}
{%- set tools_definition = '' %}
{%- set has_tools = false %}
{%- if tools is defined and tools is not none and tools | length > 0 %}
    {%- set has_tools = true %}
    {%- set tools_definition = '[AVAILABLE_TOOLS]' + (tools | tojson) + '[/AVAILABLE_TOOLS]' %}
    {{- tools_definition }}
{%- endif %}
{%- set ns = namespace(index=0) %}
{%- for message in loop_messages %}
    {%- if message.role == 'user' or (message.role == 'assistant' and (message.tool_calls is not defined or message.tool_calls | length == 0)) %}
        {%- if (message['role'] == 'user') != (ns.index % 2 == 0) %}
            {{- raise_exception('user and assistant must alternate, found ' ~ message.role) }}
        {%- endif %}
        {%- set ns.index = ns.index + 1 %}
    {%- endif %}
{%- endfor %}
{%- for message in loop_messages %}
    {%- if message['role'] == 'user' %}
        {%- if message['content'] is string %}
            {{- '[INST]' + message['content'] + '[/INST]' }}
        {%- elif message['content'] | length > 0 %}
            {{- '[INST]' }}
            {%- for block in message['content'] | sort(attribute='type', reverse=True) %}
                {{- block['text'] if block['type'] == 'text' else '[IMG]' }}
            {%- endfor %}
            {{- '[/INST]' }}
        {%- endif %}
    {%- elif message['role'] == 'assistant' %}
        {%- if message['content'] is string and message['content'] != '' %}{{- message['content'] }}{%- endif %}
        {%- for tool in message.tool_calls or [] %}
            {%- set arguments = tool['function']['arguments'] %}
            {%- if arguments is not string %}{%- set arguments = arguments | tojson | safe %}{%- endif %}
            {{- '[TOOL_CALLS]' + tool['function']['name'] + '[ARGS]' + arguments }}
        {%- endfor %}
        {{- eos_token }}
    {%- elif message['role'] == 'tool' %}
        {{- '[TOOL_RESULTS]' + message['content'] | string + '[/TOOL_RESULTS]' }}
    {%- else %}
        {{- raise_exception('no role of this kind: ' + message['role']) }}
    {%- endif %}
{%- endfor %}
"""
