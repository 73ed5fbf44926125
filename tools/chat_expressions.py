# SPDX-License-Identifier: Apache-2.0
"""Expressions of chat templates, one a line, that chat_snippets.py renders by themselves."""

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
