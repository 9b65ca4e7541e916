#include "base/system.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <sstream>

namespace ingot {
namespace {

// The value of "KEY: N kB" in a /proc file, in bytes; 0 where it is not there.
uint64_t proc_kilobytes(const char* path, const std::string& key) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line))
    if (line.rfind(key, 0) == 0) return std::strtoull(line.c_str() + key.size(), nullptr, 10) * 1024;
  return 0;
}

// The number in a one-line file, or `fallback` ("max", or no such file).
uint64_t number_in(const char* path, uint64_t fallback) {
  std::ifstream file(path);
  uint64_t value = 0;
  return file >> value ? value : fallback;
}

constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();

uint64_t cgroup_headroom() {
  const uint64_t limit = number_in("/sys/fs/cgroup/memory.max", kNoLimit);
  if (limit == kNoLimit) return kNoLimit;
  const uint64_t used = number_in("/sys/fs/cgroup/memory.current", 0);
  return used < limit ? limit - used : 0;
}

int cgroup_cores() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  std::string quota;
  double period = 0;
  if (!(file >> quota >> period) || quota == "max" || period <= 0) return std::numeric_limits<int>::max();
  return std::max(1, static_cast<int>(std::floor(std::strtod(quota.c_str(), nullptr) / period)));
}

}  // namespace

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  const int by_affinity = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  return std::max(1, std::min(by_affinity, cgroup_cores()));
}

int default_threads(int requested, int ranks_on_node) {
  if (requested > 0) return requested;
  if (const char* text = std::getenv("OMP_NUM_THREADS")) {
    const int value = std::atoi(text);
    if (value > 0) return value;
  }
  return std::max(1, usable_cores() / std::max(1, ranks_on_node));
}

uint64_t available_memory() {
  uint64_t bytes = std::min(proc_kilobytes("/proc/meminfo", "MemAvailable:"), cgroup_headroom());
  struct rlimit limit {};
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    const uint64_t used = proc_kilobytes("/proc/self/status", "VmSize:");
    bytes = std::min<uint64_t>(bytes, used < limit.rlim_cur ? limit.rlim_cur - used : 0);
  }
  return bytes;
}

uint64_t resident_bytes() {
  return proc_kilobytes("/proc/self/status", "VmRSS:");
}
uint64_t peak_resident_bytes() {
  return proc_kilobytes("/proc/self/status", "VmHWM:");
}

uint64_t minor_page_faults() {
  struct rusage usage {};
  return getrusage(RUSAGE_SELF, &usage) == 0 ? static_cast<uint64_t>(usage.ru_minflt) : 0;
}

int64_t thread_cpu_ns() {
  struct timespec time {};
  if (::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) != 0) return 0;
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

int64_t thread_queued_ns() {
  // "RAN QUEUED TIMESLICES"; without a stream, which would allocate.
  const int fd = ::open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  std::array<char, 128> text{};
  const ssize_t read = ::read(fd, text.data(), text.size() - 1);
  ::close(fd);
  char* rest = text.data();
  if (read > 0) std::strtoll(rest, &rest, 10);
  return std::strtoll(rest, nullptr, 10);
}

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line))
    if (line.rfind("model name", 0) == 0 && line.find(':') != std::string::npos) return line.substr(line.find(':') + 2);
  return "unknown";
}

}  // namespace ingot
