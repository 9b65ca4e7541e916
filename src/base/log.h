// The program's log: lines to stderr (and to a file once one is set). Thread-safe. Data for scripts goes to stdout, not
// here.
#pragma once

#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <utility>

#include "base/result.h"

namespace ingot {

enum class LogLevel { debug, info, warning, error };

void log_line(LogLevel level, const std::string& text);
// Lines below `level` are dropped.
void set_log_level(LogLevel level);
// Lines are appended to this file too, with a time stamp, until another file (or an empty path) is set.
Status set_log_file(const std::filesystem::path& path);

template <class... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) {
  log_line(LogLevel::info, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void log_warning(fmt::format_string<Args...> format, Args&&... args) {
  log_line(LogLevel::warning, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void log_error(fmt::format_string<Args...> format, Args&&... args) {
  log_line(LogLevel::error, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace ingot
