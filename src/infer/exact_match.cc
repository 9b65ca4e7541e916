#include "infer/exact_match.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "data/jsonl.h"
#include "data/rows.h"
#include "train/model_directory.h"

namespace ingot {
namespace {

Result<std::vector<std::string>> answers_of(const nlohmann::json& value, const JsonLine& line, const TextPlace& place) {
  std::vector<std::string> answers;
  const bool is_list = value.is_array() && !value.empty();
  for (const nlohmann::json& answer : is_list ? value : nlohmann::json::array({value})) {
    if (!answer.is_string())
      return input_error("{}: the answer is of type {}; expected a string or an array of strings", place.to_string(),
                         answer.type_name());
    answers.push_back(answer.get<std::string>());
    line.restore_bytes(answers.back());
  }
  return answers;
}

Result<PromptedAnswer> parse_row(const RawRow& row, const TextPlace& place) {
  INGOT_ASSIGN(const JsonLine line, JsonLine::parse(row.text, place));
  const nlohmann::json& object = line.value();
  if (!object.is_object() || !object.contains("prompt") || !object.contains("answer"))
    return input_error("{}: expected an object like {{\"prompt\": \"…\", \"answer\": \"…\"}}", place.to_string());
  if (!object["prompt"].is_string())
    return input_error("{}: the prompt is of type {}; expected a string", place.to_string(),
                       object["prompt"].type_name());
  PromptedAnswer question;
  question.prompt = object["prompt"].get<std::string>();
  line.restore_bytes(question.prompt);
  INGOT_ASSIGN(question.answers, answers_of(object["answer"], line, place));
  return question;
}

// The prompt's ids, cut on the left where they leave no room for the new tokens.
Result<std::vector<int32_t>> prompt_ids(const Tokenizer& tokenizer, const std::string& prompt, int64_t room,
                                        int64_t& tokens_cut) {
  std::vector<int32_t> ids = tokenizer.specials_before();
  const auto front = static_cast<int64_t>(ids.size());
  tokenizer.encode(prompt, ids);
  if (ids.empty() && tokenizer.bos_id()) ids.push_back(*tokenizer.bos_id());
  if (ids.empty() && tokenizer.eos_id()) ids.push_back(*tokenizer.eos_id());
  if (ids.empty()) return input_error("a prompt is empty, and the tokenizer has no BOS and no EOS to start from");
  tokens_cut = std::max<int64_t>(0, static_cast<int64_t>(ids.size()) - room);
  ids.erase(ids.begin() + std::min(front, room - 1), ids.begin() + std::min(front, room - 1) + tokens_cut);
  return ids;
}

// Generates until EOS, the stop or max_tokens: the text before the stop.
Result<std::string> answer(Generator& generator, const Tokenizer& tokenizer, const std::vector<int32_t>& prompt,
                           const ExactMatchOptions& options, uint64_t seed) {
  GenerateOptions generation;
  generation.max_tokens = options.max_tokens;
  generation.sampling = options.sampling;
  generation.sampling.seed = seed;
  generation.ends = tokenizer.end_ids();
  std::vector<int32_t> tokens;
  std::string text;
  size_t stop = std::string::npos;
  generator.clear();
  const auto done = generate(generator, prompt, generation, [&](int32_t token) -> Status {
    if (generation.is_end(token)) return {};
    tokens.push_back(token);
    text = tokenizer.decode(tokens, true);
    stop = options.stop.empty() ? std::string::npos : text.find(options.stop);
    // The error that ends a generation: what is wanted is there.
    if (stop != std::string::npos) return Error{ErrorKind::stopped, {}};
    return {};
  });
  if (!done.ok() && done.error().kind != ErrorKind::stopped) return done.error();
  return text.substr(0, stop);
}

}  // namespace

Result<std::vector<PromptedAnswer>> read_prompted_answers(const std::string& path) {
  INGOT_ASSIGN(const MappedFile map, MappedFile::open(path));
  std::vector<PromptedAnswer> questions;
  RowCursor rows(map.text(), FileFormat::jsonl);
  while (const auto row = rows.next()) {
    INGOT_ASSIGN(PromptedAnswer question, parse_row(*row, {path, row->line}));
    questions.push_back(std::move(question));
  }
  if (questions.empty())
    return input_error("{}: there is no line; expected {{\"prompt\": \"…\", \"answer\": \"…\"}} on each", path);
  return questions;
}

uint64_t fingerprint_of(const std::vector<PromptedAnswer>& questions) {
  StreamHash hash;
  for (const PromptedAnswer& question : questions) {
    const std::string row = nlohmann::json{question.prompt, question.answers}.dump(
        -1, ' ', false, nlohmann::json::error_handler_t::replace);
    hash.add(std::as_bytes(std::span(row.data(), row.size())));
  }
  return hash.digest();
}

std::string normalized_answer(std::string_view text, bool ignore_case) {
  std::string out;
  bool pending = false;
  for (const char c : text) {
    if (c == ' ' || (c >= '\t' && c <= '\r')) {
      pending = !out.empty();
      continue;
    }
    if (std::exchange(pending, false)) out += ' ';
    out += ignore_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return out;
}

Result<std::vector<ExactMatch>> score_exact_match(const LoadedModel& model,
                                                  const std::vector<PromptedAnswer>& questions,
                                                  const ExactMatchOptions& options, const ThreadPool& pool) {
  INGOT_TRY(check_sampling(options.sampling));
  INGOT_ASSIGN(const Tokenizer tokenizer, tokenizer_of(model));
  const int64_t context = model.model.config().max_position_embeddings, room = context - options.max_tokens;
  if (options.max_tokens < 1 || room < 1)
    return usage_error("{} new tokens at most; expected 1 to {}: the model's context is {}", options.max_tokens,
                       context - 1, context);
  std::vector<ExactMatch> results;
  std::vector<std::vector<int32_t>> prompts;
  int64_t longest = 0;
  for (const PromptedAnswer& question : questions) {
    results.emplace_back();
    INGOT_ASSIGN(std::vector<int32_t> ids, prompt_ids(tokenizer, question.prompt, room, results.back().tokens_cut));
    longest = std::max(longest, static_cast<int64_t>(ids.size()));
    prompts.push_back(std::move(ids));
  }
  INGOT_ASSIGN(auto generator, Generator::create(model.model,
                                                 {.tokens = longest + options.max_tokens,
                                                  .weights = for_generation(WeightFormat::fp32, options.precision),
                                                  .precision = options.precision},
                                                 pool));
  INGOT_TRY(load_weights_as_kept(model.directory, model.model, generator->arena(), pool));
  for (size_t i = 0; i < questions.size(); ++i) {
    INGOT_ASSIGN(results[i].text, answer(*generator, tokenizer, prompts[i], options, options.sampling.seed + i));
    const std::string given = normalized_answer(results[i].text, options.ignore_case);
    results[i].correct = std::ranges::any_of(questions[i].answers, [&](const std::string& expected) {
      return normalized_answer(expected, options.ignore_case) == given;
    });
    if (options.progress) options.progress(static_cast<int64_t>(i + 1), static_cast<int64_t>(questions.size()));
  }
  return results;
}

}  // namespace ingot
