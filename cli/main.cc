// ingot: the command line. Each verb is in cmd_VERB.cc; this file lists them and turns errors into exit statuses.
#include <CLI/CLI.hpp>
#include <csignal>
#include <exception>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/check.h"
#include "base/log.h"
#include "command.h"

namespace ingot::cli {

void print_json(const nlohmann::ordered_json& object) {
  std::cout << object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << std::endl;
}

namespace {

constexpr int kUsage = static_cast<int>(ErrorKind::usage);

// What was printed counts only when it has arrived.
Status flush_output() {
  std::cout.flush();
  return std::cout ? Status() : failed_error("writing to standard output failed");
}

Status run_verb(const Command& command) {
  INGOT_TRY(command.run());
  return flush_output();
}

int run(int argc, char** argv) {
  CLI::App app{"Ingot pre-trains and adapts transformer language models on CPUs.", "ingot"};
  app.set_version_flag("--version", INGOT_VERSION);
  app.require_subcommand(1);
  Command command;
  for (auto add : {INGOT_VERBS}) add(app, command);
  // Before the parser, which would only say that a verb is missing.
  if (argc > 1 && argv[1][0] != '-' &&
      app.get_subcommands([&](const CLI::App* verb) { return verb->check_name(argv[1]); }).empty()) {
    std::cerr << "error: there is no verb '" << argv[1] << "'\nRun 'ingot --help' for the list.\n";
    return kUsage;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    if (problem.get_exit_code() == 0) {  // --help, --version
      const int status = app.exit(problem);
      return flush_output().ok() ? status : static_cast<int>(ErrorKind::failed);
    }
    std::cerr << "error: " << problem.what() << "\nRun 'ingot --help' or 'ingot VERB --help' for the usage.\n";
    return kUsage;
  }
  const Status status = run_verb(command);
  if (status.ok()) return 0;
  if (!status.error().message.empty()) log_error("{}", status.error().message);
  return static_cast<int>(status.error().kind);
}

}  // namespace
}  // namespace ingot::cli

int main(int argc, char** argv) {
  // A file above the user's limit and a closed pipe are then errors of writing, with their messages; a reader of the
  // log that goes away does not end a run.
  std::signal(SIGXFSZ, SIG_IGN);
  std::signal(SIGPIPE, SIG_IGN);
  try {
    return ingot::cli::run(argc, argv);
  } catch (const std::bad_alloc&) {
    std::cerr << "error: out of memory\n";
  } catch (const std::exception& problem) {
    std::cerr << "error: " << problem.what() << "\n";
  }
  return static_cast<int>(ingot::ErrorKind::failed);
}
