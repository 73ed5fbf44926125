# SPDX-License-Identifier: Apache-2.0
"""Short templates, one construct each. REFUSED are those that Jinja2 answers with an error."""

CONTEXT = {
    "text": "Hello, World",
    "spaced": "  two words\t\n",
    "accents": "Grüße, 世界 🙂",
    "lines": "one\ntwo\n\nfour\n",
    "empty": "",
    "number": 7,
    "negative": -7,
    "ratio": 2.5,
    "big": 123456789012,
    "yes": True,
    "no": False,
    "nothing": None,
    "list": [3, 1, 2],
    "words": ["pear", "Apple", "fig", "apple"],
    "mixed": [1, "a", None, True, 2.0, [1], {"k": "v"}],
    "table": {"b": 2, "a": 1, "items": "shadowed", "C": 3},
    "users": [
        {"name": "Ann", "age": 31, "tags": ["x", "y"], "active": True},
        {"name": "bob", "age": 25, "tags": [], "active": False},
        {"name": "Cid", "age": 40, "tags": ["z"], "active": True, "nick": "C"},
    ],
}

EXPRESSIONS = """
1 + 2 * 3 - 4
(1 + 2) * 3
7 / 2
6 / 2
7 // 2
negative // 2
7 % 3
negative % 3
7 % -3
7.5 % 2
7.5 // 2
-7.5 // 2
2 ** 10
2 ** -1
2 ** 3 ** 2
-2 ** 2
2.0 ** 3
- number
+ number
1_000 + 1
0.1 + 0.2
1e3
1.5e-7
1e16
1e15
123456789.123
1 / 3
2.50
1e22
-0.0
true + true
"a" + "b"
"a" "b"
"ab" * 3
3 * "ab"
"ab" * 0
[1] + [2]
[1, 2] * 2
(1, 2) + (3,)
1 ~ "a" ~ 2.0 ~ none ~ true
"x" ~ missing ~ "y"
"%s is %d" % ("a", 3)
"%5.2f|%-5s|%05d|%x|%%" % (3.14159, "ab", 42, 255)
"%s" % text
"%s" % list
text
text[0]
text[-1]
text[1:3]
text[:-1]
text[::-1]
text[::2]
text[-3:]
text[5:2]
text[100]
text[100:]
accents
accents[2]
accents[7:]
accents[::-1]
accents|length
accents|upper
accents|lower
list[0]
list[-1]
list[1:]
list[::-1]
list[5] is defined
list[-5:2]
list[2:0:-1]
list[none:2]
[1,2,3,4,5,6][1:5:2]
[1,2,3,4,5,6][4:0:-2]
table["b"]
table.b
table.items() | list
table["items"]
table.missing is defined
table["missing"]
table.keys() | list
table.values() | list
table.get("a")
table.get("zz")
table.get("zz", 5)
table | items | list
table | length
table | list
users[0].name
users[0]["name"]
users[0].tags.1
users[-1].nick
users[1].nick is defined
users[0].name[0]
{"a": 1, 2: "b", none: 3, true: 4}
{"a": 1}["a"]
{"a": {"b": [1, 2]}}.a.b[1]
{1: "x"}[1.0]
{}
[]
()
(1,)
(1, 2)
1, 2
[1, 2,]
["a'b", 'a"b', "both ' and \\"", "line\\n", "tab\\t", "\\x07"]
"esc: \\n|\\t|\\\\|\\'|\\"|\\x41|\\u00e9|\\U0001F600|\\q|\\101"
'it\\'s'
mixed
none
true
True and False
1 and 2
0 and 2
0 or 2
"" or "x"
1 or missing
not 1
not ""
not not yes
not 1 == 2
1 < 2
1 < 2 < 3
1 < 3 < 2
1 == 1.0
1 == true
"1" == 1
"a" < "b"
"a" < "B"
"a" <= "a"
3 >= 3.0
[1, 2] == [1, 2]
[1, 2] == (1, 2)
[1, 2] < [1, 3]
[1] < [1, 0]
{"a": 1} == {"a": 1.0}
none == none
missing == nothing
missing == absent
missing != 1
1 in [1, 2]
"ell" in text
"zz" not in text
"a" in table
"zz" in table
none in mixed
1 in missing
not 1 in [2]
"a" if yes else "b"
"a" if no else "b"
"a" if no
("a" if no) is defined
"a" if no else "b" if no else "c"
"x" if yes and not no else "y"
(1 if yes else 2) + 3
missing
missing is defined
missing is undefined
missing is none
missing|default("d")
missing|default
missing|d("x")
nothing|default("d")
nothing|default("d", true)
empty|default("d", boolean=true)
no|default("d", true)
missing|length
missing|list
missing|upper
missing|join(",")
missing|first is defined
missing|trim
missing|string
missing is string
missing is iterable
missing is sequence
missing is mapping
table.zz|default("q")
number is number
number is integer
number is float
ratio is float
yes is number
yes is integer
yes is boolean
number is boolean
yes is true
no is false
1 is true
nothing is none
nothing is not none
text is string
list is string
table is mapping
list is mapping
list is sequence
text is sequence
table is sequence
number is sequence
list is iterable
number is iterable
table is iterable
range is callable
text.upper is callable
text is callable
4 is even
4 is odd
negative is odd
9 is divisibleby 3
9 is divisibleby(2)
1 is eq 1
1 is equalto 2
1 is ne(2)
1 is lt 2
1 is le 1
2 is gt 1
2 is ge 3
2 is greaterthan(1)
2 is lessthan 1
1 is in [1, 2]
5 is not in [1, 2]
"abc" is lower
"ABC" is upper
"Abc" is lower
"upper" is filter
"nope" is filter
"even" is test
none is sameas none
1 is sameas true
not missing is defined
yes is true and no is false
missing is defined and missing > 3
missing is not defined or missing > 3
text|upper
text|lower
text|title
"foo-bar (baz) it's x_y"|title
"foo-bar (baz) it's x_y".title()
"hELLO wORLD"|capitalize
"hELLO wORLD".capitalize()
spaced|trim
"xxabcxx"|trim("x")
"[" ~ spaced.strip() ~ "]"
"[" ~ spaced.lstrip() ~ "]"
"[" ~ spaced.rstrip() ~ "]"
"xyabcyx".strip("xy")
"xyabcyx".lstrip("xy")
"xyabcyx".rstrip("xy")
"ünïüx".strip("üx")
text.upper()
text.lower()
text.startswith("Hell")
text.startswith(("x", "H"))
text.endswith("d")
text.endswith("x")
text.split()
text.split(", ")
text.split("o")
text.split("o", 1)
text.rsplit("o", 1)
"a,b,c".rsplit(",", 1)
"  a  b c ".split()
"  a  b c ".split(none, 1)
"".split()
"".split(",")
"a||b|".split("|")
text.replace("l", "L")
text.replace("l", "L", 1)
"aaa".replace("a", "")
"abc".replace("", "-")
text|replace("o", "0")
text|replace("l", "L", 2)
text.find("o")
text.find("zz")
text.rfind("o")
accents.find("世")
text.index("W")
text.count("l")
"aaa".count("aa")
"".count("")
", ".join(words)
"abc".join([])
"-".join("abc")
lines.splitlines()
"a\\r\\nb\\rc".splitlines()
"123".isdigit()
"12a".isdigit()
"".isdigit()
"abc".isalpha()
"ab1".isalnum()
" \\t".isspace()
"ABC".isupper()
"abc".islower()
"prefix-x".removeprefix("prefix-")
"x.py".removesuffix(".py")
"a=b=c".partition("=")
"abc".partition("=")
list.index(1)
list.count(1)
list|length
list|count
text|count
list|first
list|last
text|first
[]|first
[]|last is defined
list|sum
users|sum(attribute="age")
[1.5, 2]|sum
[]|sum
[[1], [2]]|sum(start=[])
list|min
list|max
words|min
words|max
[]|max is defined
users|map(attribute="name")|list
users|map(attribute="nick", default="-")|list
users|map(attribute="tags.0", default="-")|list
words|map("upper")|list
words|map("replace", "p", "P")|list
words|map("length")|join(",")
users|selectattr("active")|map(attribute="name")|join(", ")
users|rejectattr("active")|map(attribute="name")|join(", ")
users|selectattr("age", "gt", 30)|map(attribute="name")|list
users|selectattr("name", "equalto", "bob")|list|length
users|selectattr("nick", "defined")|list|length
users|selectattr("name", "in", ["Ann", "Cid"])|map(attribute="age")|list
list|select("odd")|list
list|select(">", 1)|list
list|reject("odd")|list
mixed|select("string")|list
[0, 1, "", "a"]|select|list
[0, 1, "", "a"]|reject|list
nothing|selectattr("type", "equalto", "x")|list|length
nothing|map("upper")|list
0|select("odd")|list
list|join
list|join("-")
words|join(", ")
users|join(",", attribute="name")
[1, none, true]|join("|")
text|join("-")
list|reverse|list
text|reverse
list|sort
list|sort(reverse=true)
words|sort
words|sort(case_sensitive=true)
users|sort(attribute="age")|map(attribute="name")|list
users|sort(attribute="name", reverse=true)|map(attribute="name")|list
[[2, "b"], [1, "z"], [2, "a"]]|sort
words|unique|list
words|unique(case_sensitive=true)|list
[1, 1.0, 2, "1"]|unique|list
table|dictsort
{"b": 1, "A": 2}|dictsort(true)
{"b": 1, "a": 2}|dictsort(by="value")
{"b": 1, "a": 2}|dictsort(false, "key", true)
text|list
table|list|join
"42"|int
"4.7"|int
"abc"|int
"abc"|int(5)
"ff"|int(base=16)
" 12 "|int
4.7|int
-4.7|int
none|int(3)
true|int
"3.5"|float
"abc"|float
"abc"|float(1.5)
3|float
"1e3"|float
3.14159|round(2)
3.7|round
2.5|round
3.5|round
7|round
2.44|round(1, "ceil")
2.46|round(1, "floor")
-3|abs
-3.5|abs
number|string
ratio|string
none|string
list|string
text|safe
lines|indent
lines|indent(2)
lines|indent(2, true)
lines|indent(2, blank=true)
lines|indent("> ", first=true)
text|indent
"%s-%s"|format("a", 1)
table|tojson
mixed|tojson
text|tojson
accents|tojson
accents|tojson(ensure_ascii=true)
"a\\"b\\\\c/d<e>&'\\n\\t\\x01"|tojson
table|tojson(indent=2)
mixed|tojson(indent=4)
[]|tojson(indent=2)
{"a": [], "b": {}}|tojson(indent=2)
table|tojson(separators=(",", ":"))
table|tojson(indent=2, separators=(",", " = "))
{"b": 1, "a": {"d": 1, "c": 2}}|tojson(sort_keys=true)
{1: 2, none: 3, true: 4, 1.5: 5}|tojson
(1, 2)|tojson
1.0|tojson
1e20|tojson
none|tojson
table|tojson(indent="--")
range(5)|list
range(2, 5)|list
range(10, 0, -3)|list
range(0)|list
dict(a=1, b="x")
dict({"a": 1}, b=2)
namespace(a=1).a
strftime_now("%d %b %Y")
strftime_now("%Y-%m-%d %H:%M:%S %A %B %j")
-3|abs + 1
-1|string|length
"a,b"|upper|list|length
text|length > 5 and text|first == "H"
words|map("lower")|select("equalto", "apple")|list|length
[1,2,3]|map("string")|join
not yes|string
"5"|int * 2
number|string ~ "x"
(1 + 2)|string
yes == true is true
{"a": 1}.items()|list
"abc"|upper()
""|length == 0
text[text|length - 1]
list[list|length - 1]
users[0].tags[users[0].tags|length - 1]
"a" in ["a", "b"] and "c" not in "ab"
"<" ~ "a b  c".split(" ")[-2] ~ ">"
"x"|default("y")|upper
text.split(",")[1].strip()
(text ~ "!")[-1]
list + [users|length]
"{}"
"}}"
'{%'
none is none
1if yes else 2
words[1:]|first
["a", "b", "c"]|last
[[1, 2], [3]]|map("first")|list
[{"a": {"b": 1}}]|map(attribute="a.b")|list
"a" < "b" == true
1 != 2 != 1
(none, true)|join(",")
loop is defined
caller is defined
"""

STATEMENTS = [
    "a\n",
    "a\n\n",
    "a\r\nb\rc\n",
    "  {% if yes %}\n  x\n  {% endif %}\n  y",
    "  {%- if yes %}\n  x\n  {%- endif %}\n  y",
    "  {%+ if yes %}\n  x\n  {% endif +%}\n  y",
    "a {% if yes %}b{% endif %} c",
    "\n\n  {% set x = 1 %}  \n  {{ x }}\n",
    "{{ 1 -}}   \n  2",
    "1  \n {{- 2 }}",
    "1 {{+ 2 }}",
    "x\n  {# comment #}\n  y",
    "x {#- comment -#}   y",
    "x\n  {# a\nb #}  z",
    "x{#+ a +#}\ny",
    "  {{ 1 }}\n  {{ 2 }}\n",
    "{% raw %}{{ x }} {% if %}{% endraw %}",
    "a {%- raw -%}  {{ x }}  {%- endraw -%}  b",
    "  {% raw %}\n  {{ x }}\n  {% endraw %}\nb",
    "{% if yes %}1{% elif yes %}2{% else %}3{% endif %}",
    "{% if no %}1{% elif yes %}2{% else %}3{% endif %}",
    "{% if no %}1{% elif nothing %}2{% else %}3{% endif %}",
    "{% if missing %}1{% else %}2{% endif %}",
    "{% if list %}{% if table %}both{% endif %}{% endif %}",
    "{% for x in list %}{{ x }},{% endfor %}",
    "{% for x in [] %}{{ x }}{% else %}none{% endfor %}",
    "{% for x in missing %}{{ x }}{% else %}none{% endfor %}",
    "{% for x in list if x > 1 %}{{ loop.index }}/{{ loop.length }}:{{ x }} {% else %}none{% endfor %}",
    "{% for x in list if x > 9 %}{{ x }}{% else %}none{% endfor %}",
    "{% for k, v in table|dictsort %}{{ k }}={{ v }};{% endfor %}",
    "{% for k in table %}{{ k }}{% endfor %}",
    "{% for k, v in table.items() %}{{ loop.index0 }}{{ k }}{{ v }}{{ ',' if not loop.last }}{% endfor %}",
    "{% for c in text %}{{ c }}.{% endfor %}",
    "{% for (a, b), c in [((1, 2), 3), ((4, 5), 6)] %}{{ a }}{{ b }}{{ c }} {% endfor %}",
    "{% for x in list %}{{ loop.index }} {{ loop.index0 }} {{ loop.revindex }} {{ loop.revindex0 }} {{ loop.first }} "
    "{{ loop.last }} {{ loop.length }} {{ loop.depth }} {{ loop.depth0 }};{% endfor %}",
    "{% for x in list %}{{ loop.previtem is defined }}{{ loop.previtem }}-{{ loop.nextitem }};{% endfor %}",
    "{% for x in list %}{{ loop.cycle('a', 'b') }}{% endfor %}",
    "{% for x in list %}{% for y in words %}{{ loop.depth }}{{ loop.index }}{% endfor %}{{ loop.index }}{% endfor %}",
    "{% for x in list %}{% set outer = loop %}{% for y in [1] %}{{ outer.index }}{% endfor %}{% endfor %}",
    "{% for x in range(10) %}{% if x == 3 %}{% break %}{% endif %}{{ x }}{% endfor %}",
    "{% for x in range(6) %}{% if x is odd %}{% continue %}{% endif %}{{ x }}{% endfor %}",
    "{% for x in [1] %}{% for y in [1, 2] %}{% break %}{% endfor %}{{ x }}{% endfor %}",
    "{% for x in [] %}{% else %}{% for y in [1, 2] %}{{ y }}{% break %}{% endfor %}{% endfor %}",
    "{% for i in range(3) %}{{ i }}{% endfor %}{{ i is defined }}",
    "{% for x in list[1:] + [9] %}{{ x }}{% endfor %}",
    "{% for x in 1, 2, 3 %}{{ x }}{% endfor %}",
    "{% for u in users %}{{ u.name }}:{{ u.tags|join('/') or '-' }} {% endfor %}",
    "{% set x = 1 %}{% for i in list %}{% set x = x + i %}{{ x }} {% endfor %}{{ x }}",
    "{% set x = 1 %}{% if yes %}{% set x = 2 %}{% endif %}{{ x }}",
    "{% set ns = namespace(x=0) %}{% for i in list %}{% set ns.x = ns.x + i %}{% endfor %}{{ ns.x }}",
    "{% set ns = namespace() %}{% set ns.a = [1] %}{% set ns.a = ns.a + [2] %}{{ ns.a }}{{ ns.b is defined }}",
    "{% set ns = namespace({'a': 1}, b=2) %}{{ ns.a }}{{ ns.b }}{{ ns['a'] }}",
    "{% set a, b = 1, 2 %}{{ a }}{{ b }}",
    "{% set a, b = [3, 4] %}{{ b }}{{ a }}",
    "{% set (a, b) = (1, 2) %}{{ a + b }}",
    "{% set x = 1, 2 %}{{ x }}",
    "{% set x %}a {{ 1 + 1 }}{% endset %}[{{ x }}]",
    "{% set x | upper %}abc{% endset %}{{ x }}",
    "{% set x | replace('a', 'b') | upper %}abc{% endset %}{{ x }}",
    "{% set x %}{% set y = 1 %}{{ y }}{% endset %}{{ x }}{{ y is defined }}",
    "{% set ns = namespace() %}{% set ns.x %}block{% endset %}{{ ns.x }}",
    "{% macro m() %}x{% endmacro %}{{ m() }}{{ m() }}",
    "{% macro m(a, b=2) %}{{ a }}-{{ b }};{% endmacro %}{{ m(1) }}{{ m(1, 3) }}{{ m(b=5, a=4) }}{{ m() }}",
    "{% macro m(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}",
    "{% macro m(n) %}{{ n }}{% if n > 0 %}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(4) }}",
    "{% macro m() %}{{ x }}{% endmacro %}{% set x = 1 %}{{ m() }}{% set x = 2 %}{{ m() }}",
    "{% macro m() %}{% set x = 5 %}{{ x }}{% endmacro %}{% set x = 1 %}{{ m() }}{{ x }}",
    "{% macro m(x) -%}\n  {{ x }}\n{%- endmacro %}[{{ m(3) }}]",
    "{% macro m() %}[{{ caller() }}]{% endmacro %}{% call m() %}in{% endcall %}",
    "{% macro m(xs) %}{% for x in xs %}{{ caller(x, loop.index) }}{% endfor %}{% endmacro %}"
    "{% call(x, i) m(list) %}{{ i }}:{{ x }} {% endcall %}",
    "{% macro m() %}{{ caller() }}{% endmacro %}{% set x = 3 %}{% call m() %}{{ x }}{% endcall %}",
    "{% macro a() %}A{% endmacro %}{% macro b() %}{{ a() }}B{% endmacro %}{{ b() | lower }}",
    "{% macro m() %}x{% endmacro %}{{ m is callable }}{{ m() is string }}{{ m()|length }}",
    "{% for i in [1, 2] %}{% macro m() %}{{ i }}{% endmacro %}{{ m() }}{% endfor %}",
    "{% filter upper %}abc {{ 'def' }}{% endfilter %}",
    "{% filter replace('a', 'b') | upper %}banana{% endfilter %}",
    "{% filter trim %}\n {% for x in list %}{{ x }}{% endfor %} \n{% endfilter %}|",
    "{% with a = 1, b = 2 %}{{ a }}{{ b }}{% endwith %}{{ a is defined }}",
    "{% with %}{% set a = 1 %}{{ a }}{% endwith %}{{ a is defined }}",
    "{% set a = 1 %}{% with a = 2, b = a %}{{ a }}{{ b }}{% endwith %}",
    "{% generation %}x{{ 1 }}{% endgeneration %}",
    "  {% generation %}\n  x\n  {% endgeneration %}\ny",
    "{%if yes%}1{%endif%}{{2}}{%-if yes-%} 3 {%-endif-%}",
    "{{ {'a': {'b': 1}}['a'] }}}",
    "{{ '}}' }}{{ '%}' }}",
    "{ { } % } {a} #}",
    "{{ 1 }}\n{{ 2 }}\n\n{{ 3 }}",
    "{% set x = 'a' if yes else 'b' %}{{ x }}",
    "{% set f = text.upper %}{{ f() }}",
    "{% set x = true %}{% if not x %}a{% elif x and not no %}b{% endif %}",
    "{% if yes and (no or not nothing) %}ok{% endif %}",
    "{% if 'a' in table and table.a == 1 %}ok{% endif %}",
    "{% if (list|length) % 2 == 1 %}odd{% endif %}",
    "{% set tools = none %}{% if tools is not none and tools|length > 0 %}a{% else %}b{% endif %}",
    "{% for m in users %}{% if (m.age > 30) != (loop.index0 % 2 == 0) %}X{% else %}.{% endif %}{% endfor %}",
    "{{- text -}}\n\n{{- text -}}",
    "\t{%- set a = 1 -%}\t{{ a }}",
    "a\n\t {%- if yes %} b {%- endif %}\n",
    "{% set a = [] %}{% for x in list %}{% set a = a + [x * 2] %}{% endfor %}{{ a }}",
    "{{ users | map(attribute='tags') | map('join', '+') | list }}",
    "{% for group in [list, words] %}{{ group | sort | join(' ') }}\n{% endfor %}",
    "{{ '\\n'.join(['a', 'b']) }}",
    "{% if missing is defined %}{{ missing.x.y }}{% endif %}ok",
    "{% set loop_messages = users[1:] if users else [] %}{{ loop_messages | length }}",
    "plain text only",
    "{{ 'continued \\\nline' }}",
    "",
    "{# only a comment #}",
    "{% if no %}{{ raise_exception('no') }}{% endif %}fine",
]

REFUSED = [
    "{{ raise_exception('Roles must alternate') }}",
    "{% for x in list %}{{ raise_exception('at ' ~ x) }}{% endfor %}",
    "{{ missing.name }}",
    "{{ missing['name'] }}",
    "{{ missing[0] }}",
    "{{ missing() }}",
    "{{ missing + 'a' }}",
    "{{ 'a' + missing }}",
    "{{ missing + 1 }}",
    "{{ missing > 1 }}",
    "{{ -missing }}",
    "{{ table.zz.y }}",
    "{{ list[9].x }}",
    "{{ 'a' + 1 }}",
    "{{ 1 + none }}",
    "{{ 'a' - 'b' }}",
    "{{ [1] + (2,) }}",
    "{{ 1 / 0 }}",
    "{{ 1 // 0 }}",
    "{{ 1 % 0 }}",
    "{{ 1.0 / 0 }}",
    "{{ 'a' < 1 }}",
    "{{ none < 1 }}",
    "{{ 1 in 5 }}",
    "{{ 1 in 'abc' }}",
    "{{ none | length }}",
    "{{ 5 | length }}",
    "{{ 5 | list }}",
    "{% for x in 5 %}{% endfor %}",
    "{% for x in none %}{% endfor %}",
    "{% for a, b in list %}{% endfor %}",
    "{% for a, b in [[1, 2, 3]] %}{% endfor %}",
    "{% set a, b = [1] %}",
    "{{ text.nope() }}",
    "{{ text() }}",
    "{{ none() }}",
    "{{ none.x.y }}",
    "{{ list.append(4) }}",
    "{{ table.update({}) }}",
    "{{ table.pop('a') }}",
    "{{ list.sort() }}",
    "{{ text | nope }}",
    "{{ text is nope }}",
    "{{ missing | tojson }}",
    "{{ range | tojson }}",
    "{{ text.split('') }}",
    "{{ text.index('zz') }}",
    "{{ list.index(99) }}",
    "{{ ','.join([1, 2]) }}",
    "{{ text.startswith(1) }}",
    "{{ text.replace('a') }}",
    "{{ words | map('nope') | list }}",
    "{{ mixed | sort }}",
    "{{ mixed | sum }}",
    "{{ [1, 'a'] | max }}",
    "{{ 'a' | round }}",
    "{{ 'a' | abs }}",
    "{{ missing | int }}",
    "{{ range(200000) }}",
    "{{ range(1, 5, 0) }}",
    "{{ list[::0] }}",
    "{{ '%d' % 'a' }}",
    "{{ '%s %s' % 'a' }}",
    "{{ '%s' % (1, 2) }}",
    "{{ [[]] | map('nope') | list }}",
    "{% set text.x = 1 %}",
    "{% set missing.x = 1 %}",
    "{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}",
    "{% macro m(a) %}{% endmacro %}{{ m(b=1) }}",
    "{% macro m(a) %}{% endmacro %}{{ m(1, a=2) }}",
    "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "{{ {[1]: 2} }}",
    "{{ dict(1) }}",
    "{{ 5 | items | list }}",
    "{{ 1 + 2 ~ 3 + 4 }}",
    "{{ list | dictsort }}",
    "{{ text | default(1, 2, 3, 4) }}",
    "{{ text | upper(1) }}",
    "{{",
    "{{ }}",
    "{{ 1",
    "{{ 1 + }}",
    "{{ 1 2 }}",
    "{{ (1 }}",
    "{{ 1) }}",
    "{{ [1, 2 }}",
    "{{ {1: } }}",
    "{{ {'a'} }}",
    "{{ 'abc }}",
    "{{ a. }}",
    "{{ a[] }}",
    "{{ a b }}",
    "{{ a | }}",
    "{{ a is }}",
    "{{ a ! b }}",
    "{{ a $ b }}",
    "{{ 1 if }}",
    "{{ f(a=1, 2) }}",
    "{% if %}{% endif %}",
    "{% if yes %}",
    "{% if yes %}{% endfor %}",
    "{% endif %}",
    "{% else %}",
    "{% for %}{% endfor %}",
    "{% for x list %}{% endfor %}",
    "{% for x in list %}",
    "{% for x in list %}{% endif %}{% endfor %}",
    "{% set %}",
    "{% set x = %}",
    "{% set 1 = 2 %}",
    "{% set x %}",
    "{% set true = 1 %}",
    "{% macro %}{% endmacro %}",
    "{% macro m(a=1, b) %}{% endmacro %}",
    "{% macro m( %}{% endmacro %}",
    "{% call m %}{% endcall %}",
    "{% nope %}",
    "{% %}",
    "{% raw %}x",
    "{# never closed",
    "{% break %}",
    "{% continue %}",
    "{% macro m() %}{% break %}{% endmacro %}{% for x in list %}{{ m() }}{% endfor %}",
]

SNIPPETS = ["{{ " + line + " }}" for line in EXPRESSIONS.splitlines() if line] + STATEMENTS + REFUSED
