// A verb of the command line: declares its flags on the root app; when the user chose it, `run` does the work.
#pragma once

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <functional>
#include <nlohmann/json_fwd.hpp>

#include "base/result.h"

namespace ingot::cli {

// What the chosen verb sets from its parsed flags. `run` returns an error whose kind is the program's exit status.
struct Command {
  std::function<Status()> run;
};

// Prints one JSON object on stdout (what --json promises). Numbers read back to the same value; NaN and Inf become
// null.
void print_json(const nlohmann::ordered_json& object);

// One function a verb, each in cmd_VERB.cc; main.cc lists them.
void add_tokenizer(CLI::App& app, Command& command);
void add_data(CLI::App& app, Command& command);
void add_check(CLI::App& app, Command& command);
void add_plan(CLI::App& app, Command& command);
void add_train(CLI::App& app, Command& command);
void add_eval(CLI::App& app, Command& command);
void add_generate(CLI::App& app, Command& command);
void add_export(CLI::App& app, Command& command);
void add_verify(CLI::App& app, Command& command);
void add_checkpoint(CLI::App& app, Command& command);
void add_bench(CLI::App& app, Command& command);
void add_graph(CLI::App& app, Command& command);

}  // namespace ingot::cli
