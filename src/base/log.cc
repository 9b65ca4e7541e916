#include "base/log.h"

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <mutex>

namespace ingot {
namespace {

spdlog::level::level_enum spd_level(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return spdlog::level::debug;
    case LogLevel::info:
      return spdlog::level::info;
    case LogLevel::warning:
      return spdlog::level::warn;
    case LogLevel::error:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

struct Log {
  std::mutex mutex;
  std::shared_ptr<spdlog::logger> console = [] {
    auto logger = std::make_shared<spdlog::logger>("console", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    logger->set_pattern("%v");
    return logger;
  }();
  std::shared_ptr<spdlog::logger> file;
};

Log& instance() {
  static Log log;
  return log;
}

const char* prefix(LogLevel level) {
  if (level == LogLevel::warning) return "warning: ";
  return level == LogLevel::error ? "error: " : "";
}

}  // namespace

void log_line(LogLevel level, const std::string& text) {
  Log& log = instance();
  std::lock_guard lock(log.mutex);
  log.console->log(spd_level(level), "{}{}", prefix(level), text);
  if (log.file) log.file->log(spd_level(level), text);
}

void set_log_level(LogLevel level) {
  Log& log = instance();
  std::lock_guard lock(log.mutex);
  log.console->set_level(spd_level(level));
}

Status set_log_file(const std::filesystem::path& path) {
  Log& log = instance();
  std::lock_guard lock(log.mutex);
  log.file.reset();
  if (path.empty()) return {};
  try {
    auto sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(path.string());
    log.file = std::make_shared<spdlog::logger>("file", std::move(sink));
    log.file->set_pattern("%Y-%m-%d %H:%M:%S.%e %l %v");
    log.file->flush_on(spdlog::level::info);
  } catch (const spdlog::spdlog_ex& problem) {
    return failed_error("cannot open the log file {}: {}", path.string(), problem.what());
  }
  return {};
}

}  // namespace ingot
