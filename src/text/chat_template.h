// ChatTemplate: turns messages into the text that a model was trained to answer, by the template that it ships: a
// small, safe subset of Jinja. It has if, for, set (also of namespaces and blocks), macro, break, continue; filters,
// tests and methods of strings, lists and dicts; raise_exception and strftime_now. What it lacks is refused by name,
// with the line. Output, work and depth are bounded (text/jinja/render.h).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/files.h"
#include "base/result.h"
#include "text/json_reader.h"

namespace ingot {

// Immutable; copies share the parsed template.
class ChatTemplate {
 public:
  // source_name stands for the place in messages. special_tokens: an object of variables (bos_token, …).
  static Result<ChatTemplate> parse(std::string_view source, std::string_view source_name,
                                    Json special_tokens = Json::object());
  // Of a model's directory: chat_template.jinja, else "chat_template" of tokenizer_config.json (of several the one
  // named "default"). That there is none is an error. The configuration's special tokens (bos_token, …) are variables.
  static Result<ChatTemplate> load(const fs::path& directory);
  // The part of load that reads what tokenizer_config.json holds, an object; nothing where it has no template.
  static Result<std::optional<ChatTemplate>> of_config(const Json& tokenizer_config, const std::string& source_name);

  // messages: a list of objects with "role" and "content". add_generation_prompt: the text ends where an answer begins.
  Result<std::string> render(const Json& messages, bool add_generation_prompt) const;

 private:
  struct Parsed;
  std::shared_ptr<const Parsed> parsed_;
};

// The messages of a JSON text: a list, or an object with the list "messages". Each must have a string "role".
Result<Json> read_messages(std::string_view json, std::string_view source_name);

}  // namespace ingot
