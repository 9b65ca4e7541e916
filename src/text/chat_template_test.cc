#include "text/chat_template.h"

#include <gtest/gtest.h>

#include "text/text_test_util.h"

namespace ingot {
namespace {

const Json kTalk = {{{"role", "system"}, {"content", " Be brief. "}},
                    {{"role", "user"}, {"content", "Hi"}},
                    {{"role", "assistant"}, {"content", "Hello!"}},
                    {{"role", "user"}, {"content", "Why?\n"}}};

std::string rendered(std::string_view source, const Json& messages = kTalk, bool prompt = true) {
  const auto parsed = ChatTemplate::parse(source, "t", {{"bos_token", "<s>"}, {"eos_token", "</s>"}});
  if (!parsed.ok()) return "error: " + parsed.error().message;
  const auto text = parsed->render(messages, prompt);
  return text.ok() ? *text : "error: " + text.error().message;
}

TEST(ChatTemplate, MarksOfRoles) {
  EXPECT_EQ(
      rendered("{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message.content | trim + "
               "'<|im_end|>' ~ '\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' "
               "}}{% endif %}"),
      "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nHello!"
      "<|im_end|>\n<|im_start|>user\nWhy?<|im_end|>\n<|im_start|>assistant\n");
}

// Llama 2's form: the system message goes into the first question; roles must take turns.
constexpr std::string_view kTurns = R"({{ bos_token }}{% if messages[0]['role'] == 'system' %}
{%- set loop_messages = messages[1:] %}
{%- set system = '<<SYS>>\n' + messages[0]['content'].strip() + '\n<</SYS>>\n\n' %}
{%- else %}
{%- set loop_messages = messages %}
{%- set system = '' %}
{%- endif %}
{%- for message in loop_messages %}
{%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}
{{- raise_exception('Roles must take turns') }}
{%- endif %}
{%- if message.role == 'user' %}
{{- '[INST] ' + (system if loop.first else '') + message.content.strip() + ' [/INST]' }}
{%- elif message.role == 'assistant' %}
{{- ' ' + message.content + ' ' + eos_token }}
{%- endif %}
{%- endfor %})";

TEST(ChatTemplate, TurnsAndRefusals) {
  EXPECT_EQ(rendered(kTurns), "<s>[INST] <<SYS>>\nBe brief.\n<</SYS>>\n\nHi [/INST] Hello! </s>[INST] Why? [/INST]");
  EXPECT_EQ(rendered(kTurns, {{{"role", "assistant"}, {"content", "x"}}}),
            "error: t: line 10: the template refuses these messages: Roles must take turns");
}

TEST(ChatTemplate, NamespacesMacrosAndLoops) {
  EXPECT_EQ(
      rendered("{% set ns = namespace(n=0, last='') %}{% for m in messages if m.role == 'user' %}{% set ns.n = ns.n "
               "+ loop.index %}{% set ns.last = m.content %}{% endfor %}{{ ns.n }}:{{ ns.last }}"),
      "3:Why?\n");
  EXPECT_EQ(rendered("{% macro tag(name, text='none') %}<{{ name }}>{{ text }}</{{ name }}>{% endmacro %}"
                     "{{ tag('a') }}{{ tag('b', text=tag('c', 1)) }}"),
            "<a>none</a><b><c>1</c></b>");
  EXPECT_EQ(rendered("{% for i in range(9) %}{% if i == 2 %}{% continue %}{% endif %}{% if i > 4 %}{% break %}{% endif "
                     "%}{{ i }}{% endfor %}"),
            "0134");
  EXPECT_EQ(rendered("{% for k, v in {'a': 1, 'b': [2, none]}.items() %}{{ k }}={{ v }};{% else %}no{% endfor %}"),
            "a=1;b=[2, None];");
  EXPECT_EQ(rendered("{% for x in [] %}{% else %}none{% endfor %}"), "none");
  EXPECT_EQ(rendered("{% set x = 1 %}{% for i in [1, 2] %}{% set x = 5 %}{% endfor %}{{ x }}"), "1");
  EXPECT_EQ(rendered("{% set x %}a{{ 1 + 1 }}{% endset %}{{ x|upper }}"), "A2");
  EXPECT_EQ(rendered("{% for m in messages[::-1] %}{{ m.role[0] }}{{ loop.last }}{% endfor %}"),
            "uFalseaFalseuFalsesTrue");
}

TEST(ChatTemplate, WhiteSpaceIsThatOfTrimmedBlocks) {
  EXPECT_EQ(rendered("a\n  {% if true %}\n b\n  {% endif %}\nc\n"), "a\n b\nc");
  EXPECT_EQ(rendered("a  {%- if true -%}  b  {%- endif %}  c"), "ab  c");
  EXPECT_EQ(rendered("  {{ 1 }}\n  {# gone #}\n{{- 2 }}"), "  1\n2");
  EXPECT_EQ(rendered("x  {%+ if true %}y{% endif +%}\nz"), "x  y\nz");
  EXPECT_EQ(rendered("{{ {'a': {'b': 1}} }}"), "{'a': {'b': 1}}");
}

TEST(ChatTemplate, Expressions) {
  EXPECT_EQ(rendered("{{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 2 * 3 + 1 }} {{ 'ab' * 2 }}"),
            "3 -4 2 3.5 7 abab");
  EXPECT_EQ(rendered("{{ 'a' in 'cat' and 3 not in [1, 2] }} {{ x is defined }} {{ x is not none }} {{ 4 is even }}"),
            "True False True True");
  EXPECT_EQ(rendered("{{ [1, 'a', none, 1.5] | tojson }} {{ {'k': 'ü\"'} | tojson }}"),
            "[1, \"a\", null, 1.5] {\"k\": \"ü\\\"\"}");
  EXPECT_EQ(rendered("{{ {'a': [1]} | tojson(indent=2) }}"), "{\n  \"a\": [\n    1\n  ]\n}");
  EXPECT_EQ(rendered("{{ messages | map(attribute='role') | join(',') }} {{ messages | selectattr('role', 'equalto', "
                     "'user') | list | length }} {{ (messages | last).role }}"),
            "system,user,assistant,user 2 user");
  EXPECT_EQ(rendered("{{ x | default('d') }}{{ '' | default('e', true) }}{{ tools is none }}{{ not tools }}"),
            "deTrueTrue");
  EXPECT_EQ(rendered("{{ 'a,b,c'.split(',')[-1] }}{{ ' x '.strip() }}{{ 'abc'[1:] }}{{ 'abc'.startswith('ab') }}"),
            "cxbcTrue");
  EXPECT_EQ(rendered("{{ 'yes' if 1 == 1.0 else 'no' }}{{ 'no' if false }}"), "yes");
  EXPECT_EQ(rendered("{{ 'a\nb' | indent(2) }}{{ 'x' 'y' }}{{ ('a', 'b') | last }}"), "a\n  bxyb");
}

TEST(ChatTemplate, WhatIsNotSupportedIsNamedWithItsLine) {
  EXPECT_EQ(rendered("\n{% include 'x' %}"),
            "error: t: line 2: the tag 'include' is not supported (known: if, for, set, macro, break, continue, "
            "generation)");
  EXPECT_EQ(rendered("a\n\n{{ 'x' | sha1 }}").find("error: t: line 3: the filter 'sha1' is not supported (known: trim"),
            0u);
  EXPECT_EQ(rendered("{{ 'x' is prime }}").find("error: t: line 1: the test 'prime' is not supported"), 0u);
  EXPECT_EQ(rendered("{{ cycler(1) }}").find("error: t: line 1: the function 'cycler' is not supported"), 0u);
  EXPECT_EQ(rendered("{{ 'a'.encode() }}"), "error: t: line 1: the method 'encode' is not supported here");
  EXPECT_EQ(rendered("{{ 2 ** 3 }}"), "error: t: line 1: the operator '**' is not supported");
  EXPECT_EQ(rendered("{{ x.y }}"), "error: t: line 1: 'x' is undefined");
  EXPECT_EQ(rendered("{{ 1 + 'a' }}").find("error: t: line 1: '+' needs two numbers"), 0u);
  EXPECT_EQ(rendered("{% if x %}"), "error: t: line 1: expected {% elif or else or endif %}, found the end");
  EXPECT_EQ(rendered("{{ 'x }}"), "error: t: line 1: a string is not ended");
  EXPECT_EQ(rendered("{{ 1 "), "error: t: line 1: a tag is not ended by '}}'");
  EXPECT_EQ(rendered("{{ ] }}"), "error: t: line 1: expected a value, found ']'");
  EXPECT_EQ(rendered("{{ 1 // 0 }}"), "error: t: line 1: a division by 0");
}

TEST(ChatTemplate, NoTemplateRunsOrGrowsWithoutEnd) {
  EXPECT_NE(
      rendered("{% for a in range(99999) %}{% for b in range(99999) %}{% for c in range(9) %}{% endfor %}{% endfor "
               "%}{% endfor %}")
          .find("takes too much work"),
      std::string::npos);
  EXPECT_NE(rendered("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}").find("nested deeper than 1000 levels"),
            std::string::npos);
  EXPECT_NE(rendered("{{ 'x' * 99999999999 }}").find("repeated too often"), std::string::npos);
  EXPECT_NE(
      rendered("{% set ns = namespace(s='xxxxxxxxxxxxxxxx') %}{% for i in range(99) %}{% set ns.s = ns.s + ns.s %}"
               "{% endfor %}")
          .find("takes too much work"),
      std::string::npos);
  EXPECT_NE(rendered("{% set ns = namespace(s=[]) %}{% for i in range(999) %}{% set ns.s = [ns.s] %}{% endfor %}")
                .find("lists nested deeper than 100 levels"),
            std::string::npos);
  EXPECT_NE(rendered("{{ range(999999) }}").find("more than 100000 numbers"), std::string::npos);
  EXPECT_NE(rendered("{{ " + std::string(5000, '(') + " }}").find("error: t: line 1:"), std::string::npos);
  std::string sum = "{{ 1";
  for (int i = 0; i < 3000; ++i) sum += "+1";
  EXPECT_NE(rendered(sum + " }}").find("a tag of more than 2048 parts"), std::string::npos);
}

TEST(ChatTemplate, ComesFromTheModelsDirectory) {
  const fs::path directory = fs::path(testing::TempDir()) / "ingot_chat_template";
  fs::create_directories(directory);
  EXPECT_NE(ChatTemplate::load(directory).error().message.find("the model has no chat template"), std::string::npos);
  const auto write = [&](const char* name, const Json& json) {
    ASSERT_TRUE(write_file_atomic(directory / name, json.is_string() ? json.get<std::string>() : json.dump()).ok());
  };
  write("tokenizer_config.json", {{"bos_token", {{"content", "<b>"}}}, {"chat_template", "{{ bos_token }}one"}});
  EXPECT_EQ(*ChatTemplate::load(directory)->render(kTalk, true), "<b>one");
  write("tokenizer_config.json",
        {{"chat_template", {{{"name", "tool_use"}, {"template", "a"}}, {{"name", "default"}, {"template", "two"}}}}});
  EXPECT_EQ(*ChatTemplate::load(directory)->render(kTalk, true), "two");
  write("chat_template.jinja", "three");
  EXPECT_EQ(*ChatTemplate::load(directory)->render(kTalk, true), "three");
  fs::remove_all(directory);
}

TEST(ChatTemplate, MessagesAreChecked) {
  EXPECT_EQ(read_messages("{\"messages\": [{\"role\": \"user\"}]}", "m.json")->size(), 1u);
  EXPECT_EQ(read_messages("[", "m.json").error().message, "m.json: not valid JSON, or nested deeper than 256 levels");
  const std::string deep =
      "[{\"role\": \"user\", \"content\": " + std::string(1000000, '[') + std::string(1000000, ']') + "}]";
  EXPECT_EQ(read_messages(deep, "m.json").error().message, "m.json: not valid JSON, or nested deeper than 256 levels");
  EXPECT_EQ(read_messages("[]", "m.json").error().message,
            "m.json: messages: expected a list of messages, {\"role\": …, \"content\": …}, found an array of 0");
  EXPECT_EQ(read_messages("[{\"role\": 1}]", "m.json").error().message,
            "m.json: messages[0].role: expected a string, found 1");
}

}  // namespace
}  // namespace ingot
