// What the machine has and what this process uses of it.
#pragma once

#include <cstdint>
#include <string>

namespace ingot {

int usable_cores();  // that this process may run on (affinity and cgroup quota)
// --threads where given (> 0), else OMP_NUM_THREADS, else usable_cores() divided by the ranks on this node, at least 1.
int default_threads(int requested, int ranks_on_node = 1);
uint64_t available_memory();  // bytes that can still be had: MemAvailable, within the cgroup's and the process's limits
uint64_t resident_bytes();    // of this process now
uint64_t peak_resident_bytes();
uint64_t minor_page_faults();  // of this process so far
// Of the calling thread so far, in nanoseconds: it ran; it could have run, but others had the cores (0 where the system
// does not say).
int64_t thread_cpu_ns();
int64_t thread_queued_ns();
std::string cpu_name();

}  // namespace ingot
