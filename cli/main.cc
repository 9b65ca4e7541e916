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

int run(int argc, char** argv) {
  CLI::App app{"Ingot pre-trains and adapts transformer language models on CPUs.", "ingot"};
  app.set_version_flag("--version", INGOT_VERSION);
  app.require_subcommand(1);
  Command command;
  for (auto add : {INGOT_VERBS}) add(app, command);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& problem) {
    if (problem.get_exit_code() == 0) return app.exit(problem);  // --help, --version
    std::cerr << "error: " << problem.what() << "\nRun 'ingot --help' or 'ingot VERB --help' for the usage.\n";
    return kUsage;
  }
  const Status status = command.run();
  if (status.ok()) return 0;
  if (!status.error().message.empty()) log_error("{}", status.error().message);
  return static_cast<int>(status.error().kind);
}

}  // namespace
}  // namespace ingot::cli

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // a file above the user's limit is then an error of writing, with its message
  try {
    return ingot::cli::run(argc, argv);
  } catch (const std::bad_alloc&) {
    std::cerr << "error: out of memory\n";
  } catch (const std::exception& problem) {
    std::cerr << "error: " << problem.what() << "\n";
  }
  return static_cast<int>(ingot::ErrorKind::failed);
}
