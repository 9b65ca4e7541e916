// Runs the program as a user does. For tests.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace ingot::integration {

struct Outcome {
  int status = -1;                     // the exit status; -1: a signal ended it
  std::string out, err;                // what it wrote on stdout and stderr
  std::vector<std::string> fragments;  // stdout in the pieces in which it came
};

namespace command_line {

// All that comes from a pipe, which is closed then.
inline std::vector<std::string> drain(int fd) {
  std::vector<std::string> fragments;
  std::array<char, 65536> buffer;
  for (ssize_t n = 0; (n = ::read(fd, buffer.data(), buffer.size())) > 0;)
    fragments.emplace_back(buffer.data(), static_cast<size_t>(n));
  ::close(fd);
  return fragments;
}

inline std::string joined(const std::vector<std::string>& fragments) {
  std::string text;
  for (const std::string& fragment : fragments) text += fragment;
  return text;
}

}  // namespace command_line

// `ingot ARGUMENTS…`, to its end, with nothing on its standard input.
inline Outcome run_ingot(const std::vector<std::string>& arguments) {
  std::array<int, 2> out{}, err{};
  if (::pipe(out.data()) != 0 || ::pipe(err.data()) != 0) throw std::runtime_error("no pipes");
  std::vector<std::string> words{INGOT_BINARY};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("no process");
  if (child == 0) {
    ::close(0);
    ::dup2(out[1], 1);
    ::dup2(err[1], 2);
    for (const int fd : {out[0], out[1], err[0], err[1]}) ::close(fd);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  ::close(out[1]);
  ::close(err[1]);
  Outcome outcome;
  std::thread errors([&] { outcome.err = command_line::joined(command_line::drain(err[0])); });
  outcome.fragments = command_line::drain(out[0]);
  errors.join();
  outcome.out = command_line::joined(outcome.fragments);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFEXITED(status)) outcome.status = WEXITSTATUS(status);
  return outcome;
}

// Runs `ingot VERB --json …` on one thread unless the arguments say otherwise, which must succeed, and gives its
// object.
inline nlohmann::json json_of(const std::string& verb, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {verb, "--json"});
  if (std::ranges::count(arguments, "--threads") == 0) arguments.insert(arguments.end(), {"--threads", "1"});
  const Outcome outcome = run_ingot(arguments);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  return nlohmann::json::parse(outcome.out, nullptr, false);
}

// The program must end with `status`, nothing on stdout, and a message that has all the parts.
inline void expect_error(const std::vector<std::string>& arguments, int status, const std::vector<std::string>& parts) {
  const Outcome outcome = run_ingot(arguments);
  EXPECT_EQ(outcome.status, status) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  for (const std::string& part : parts)
    EXPECT_NE(outcome.err.find(part), std::string::npos) << part << " in: " << outcome.err;
}

// A directory of its own, removed with all its content at the end.
class ScratchDirectory {
 public:
  ScratchDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "ingot-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary directory");
    path_ = name;
  }
  ~ScratchDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace ingot::integration
