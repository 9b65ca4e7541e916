// How rows of CSV and JSONL become text.
#include "data/rows.h"

#include "data/testing.h"

namespace ingot {
namespace {

using Fields = std::vector<std::string>;

Result<Fields> parse(std::string_view record) {
  Fields fields{"left", "over", "from", "before", "x", "y"};
  INGOT_TRY(parse_csv_record(record, {"a.csv", 5}, fields));
  return fields;
}

TEST(Csv, FieldsAreSplitAtCommasOutsideQuotes) {
  ASSERT_VALUE(const Fields fields, parse("1,\"a, \"\"b\"\"\",,\"\"\r\n"));
  EXPECT_EQ(fields, (Fields{"1", "a, \"b\"", "", ""}));
}

TEST(Csv, AQuotedFieldHoldsLineEndsAsLf) {
  ASSERT_VALUE(const Fields fields, parse("\"one\r\ntwo\nthree\",x\n"));
  EXPECT_EQ(fields, (Fields{"one\ntwo\nthree", "x"}));
}

TEST(Csv, AnEmptyRecordIsOneEmptyField) {
  ASSERT_VALUE(const Fields fields, parse(""));
  EXPECT_EQ(fields, Fields{""});
}

TEST(Csv, ARecordEndsAtTheLineEndOutsideQuotes) {
  EXPECT_EQ(csv_record_length("a,b\nc"), 4u);
  EXPECT_EQ(csv_record_length("\"a\n\"\"\n\",b\nc"), 10u);
  EXPECT_EQ(csv_record_length("\"a\n"), 3u);
  EXPECT_EQ(csv_record_length(""), 0u);
}

TEST(RowCursor, GivesRowsWithTheirLinesAndPassesOverBlankOnes) {
  const auto rows_of = [](std::string_view text, FileFormat format) {
    std::vector<std::pair<std::string, int64_t>> rows;
    RowCursor cursor(text, format);
    while (const auto row = cursor.next()) rows.emplace_back(row->text, row->line);
    EXPECT_EQ(cursor.rest(), "");
    return rows;
  };
  using Rows = std::vector<std::pair<std::string, int64_t>>;
  EXPECT_EQ(rows_of("\xEF\xBB\xBF\n\"a\nb\",c\n \r\nd", FileFormat::csv), (Rows{{"\"a\nb\",c\n", 2}, {"d", 5}}));
  EXPECT_EQ(rows_of("{\"\n\n{}\n", FileFormat::jsonl), (Rows{{"{\"\n", 1}, {"{}\n", 3}}));
  EXPECT_EQ(rows_of("", FileFormat::csv), Rows{});
}

TEST(Csv, MisplacedQuotesAreErrorsWithTheirLine) {
  EXPECT_ERROR(parse("a,\"b"), ErrorKind::input, "a.csv:5: the quote that opens field 2 is never closed");
  EXPECT_ERROR(parse("\"a\n\"b,c"), ErrorKind::input, "a.csv:6: text follows the closing quote of field 1");
  EXPECT_ERROR(parse("5\" pipe,c"), ErrorKind::input, "a.csv:5: a quote inside field 1");
}

TEST(Template, NamesAreReplacedAndDoubledBracesArePlain) {
  ASSERT_VALUE(const TextTemplate text, TextTemplate::parse("{{{age}}} {job}{age}"));
  EXPECT_EQ(text.keys(), (Fields{"age", "job"}));
  std::string out;
  ASSERT_TRUE(text.render(
      [](size_t key, std::string& to) -> Status {
        to += key == 0 ? "30" : "clerk";
        return {};
      },
      out));
  EXPECT_EQ(out, "{30} clerk30");
}

TEST(Template, BracesWithoutAPartnerAreErrors) {
  for (const char* wrong : {"a {b", "a } b", "a {}"})
    EXPECT_ERROR(TextTemplate::parse(wrong), ErrorKind::usage, "position 2");
}

Result<std::string> jsonl_text(std::string_view line, const SourceSpec& spec = {}) {
  INGOT_ASSIGN(const RowFormat format, RowFormat::jsonl(spec));
  RowText out;
  INGOT_TRY(format.render(line, {"a.jsonl", 3}, out));
  return out.prompt + "|" + out.text;
}

TEST(Jsonl, TheTextKeyHoldsTheText) {
  ASSERT_VALUE(const std::string text, jsonl_text("{\"id\": 1, \"text\": \"a\\r\\n\\u00e9\"}\r\n"));
  EXPECT_EQ(text, "|a\r\n\xC3\xA9");
}

TEST(Jsonl, ATemplateTakesValuesOfAnyType) {
  SourceSpec spec;
  spec.row_template = "{s} {n} {b} {z} {l}";
  ASSERT_VALUE(const std::string text, jsonl_text(R"({"s": "x", "n": 1.5, "b": true, "z": null, "l": [1,"a"]})", spec));
  EXPECT_EQ(text, "|x 1.5 true  [1,\"a\"]");
}

TEST(Jsonl, APromptIsKeptApartFromTheText) {
  SourceSpec spec;
  spec.text_key = "answer";
  spec.prompt_template = "{question} ";
  ASSERT_VALUE(const std::string text, jsonl_text(R"({"question": "why?", "answer": "because"})", spec));
  EXPECT_EQ(text, "why? |because");
}

TEST(Jsonl, BytesThatAreNotUtf8PassUnchanged) {
  ASSERT_VALUE(const std::string text, jsonl_text("{\"text\": \"\xC3\xA9\x80\xBF\xC0\xFF \xE2\x82\"}"));
  EXPECT_EQ(text, "|\xC3\xA9\x80\xBF\xC0\xFF \xE2\x82");
}

TEST(Jsonl, CharactersThatStandForStrayBytesPassWhereThereAreNone) {
  ASSERT_VALUE(const std::string text, jsonl_text("{\"text\": \"\xF4\x8F\xBA\x80\"}"));
  EXPECT_EQ(text, "|\xF4\x8F\xBA\x80");
  EXPECT_ERROR(jsonl_text("{\"text\": \"\xF4\x8F\xBA\x80\x80\"}"), ErrorKind::input, "U+10FE80");
}

TEST(Jsonl, WhatIsWrongIsSaidWithFileAndLine) {
  EXPECT_ERROR(jsonl_text("{\"text\": \"a\""), ErrorKind::input, "a.jsonl:3: not one JSON value");
  EXPECT_ERROR(jsonl_text("{\"text\": \"a\"} {}"), ErrorKind::input, "a.jsonl:3: not one JSON value");
  EXPECT_ERROR(jsonl_text("[1]"), ErrorKind::input, "a.jsonl:3: a JSON array where an object was expected");
  EXPECT_ERROR(jsonl_text("{\"body\": \"a\", \"id\": 1}"), ErrorKind::input, "no key \"text\"; found body, id");
  EXPECT_ERROR(jsonl_text("{\"text\": 5}"), ErrorKind::input, "of type number; expected a string");
  SourceSpec spec;
  spec.row_template = "{title}";
  EXPECT_ERROR(jsonl_text("{}", spec), ErrorKind::input, "no key \"title\"");
  const std::string deep = std::string(1000000, '[') + std::string(1000000, ']');
  EXPECT_ERROR(jsonl_text("{\"title\": " + deep + "}", spec), ErrorKind::input,
               "a.jsonl:3: JSON nested deeper than 256 levels");
}

Result<std::string> csv_text(std::string_view header, std::string_view row, const SourceSpec& spec = {}) {
  INGOT_ASSIGN(const RowFormat format, RowFormat::csv(spec, header, {"a.csv", 1}));
  RowText out;
  INGOT_TRY(format.render(row, {"a.csv", 9}, out));
  return out.prompt + "|" + out.text;
}

TEST(CsvRows, WithoutATemplateARowIsLinesOfColumnAndValue) {
  ASSERT_VALUE(const std::string text, csv_text("Age,Job", "30,\"freelance, part time\""));
  EXPECT_EQ(text, "|Age: 30\nJob: freelance, part time");
}

TEST(CsvRows, AColumnNamedByTheTextKeyIsTheText) {
  ASSERT_VALUE(const std::string text, csv_text("id,text\n", "1,hello"));
  EXPECT_EQ(text, "|hello");
}

TEST(CsvRows, TemplatesNameColumns) {
  SourceSpec spec;
  spec.row_template = "{Status}";
  spec.prompt_template = "Age {Age}: ";
  ASSERT_VALUE(const std::string text, csv_text("Status,Age", "good,30", spec));
  EXPECT_EQ(text, "Age 30: |good");
  EXPECT_ERROR(csv_text("State,Age", "good,30", spec), ErrorKind::input,
               "a.csv:1: no column Status, which the template names; the header has State, Age");
}

TEST(CsvRows, ARowOfAnotherWidthAndANameThatStandsTwiceAreErrors) {
  EXPECT_ERROR(csv_text("a,b", "1,2,3"), ErrorKind::input, "a.csv:9: 3 fields, expected 2");
  EXPECT_ERROR(csv_text("a,b,a", "1,2,3"), ErrorKind::input, "two columns are called \"a\"");
}

}  // namespace
}  // namespace ingot
