// Options whose value is one of a few words, as the configuration spells them.
#pragma once

#include <fmt/ranges.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <string>
#include <vector>

#include "train/config.h"

namespace ingot::cli {

// The words are those of name_of(); the first choice is the default that --help shows.
template <class Enum>
CLI::Option* add_choice(CLI::App& verb, const std::string& flag, Enum& value, const std::vector<Enum>& choices,
                        const std::string& about) {
  std::vector<std::string> words;
  for (const Enum choice : choices) words.emplace_back(name_of(choice));
  const std::string expected = fmt::format("{}", fmt::join(words, ", "));
  const CLI::Validator number_of(
      [=](std::string& text) {
        for (const Enum choice : choices)
          if (text == name_of(choice)) {
            text = std::to_string(static_cast<int>(choice));
            return std::string();
          }
        return fmt::format("expected one of {}; found {}", expected, text);
      },
      expected);
  return verb.add_option(flag, value, about)->transform(number_of)->default_str(words.front());
}

// What went wrong while a model ran in a precision, with what the precision may have to do with it.
inline Status in_precision(Status status, Precision precision) {
  if (status.ok() || precision != Precision::fp16 || status.error().kind != ErrorKind::failed) return status;
  return failed_error(
      "{} (or a number on the way was beyond 65504, where fp16 ends: --precision bf16 has fp32's range)",
      status.error().message);
}

// --precision, as every verb that computes has it.
inline CLI::Option* add_precision(CLI::App& verb, Precision& precision) {
  return add_choice(verb, "--precision", precision, {Precision::fp32, Precision::bf16, Precision::fp16},
                    "What values between ops are stored in");
}

}  // namespace ingot::cli
