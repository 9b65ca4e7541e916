// Counts what the test program allocates, to see that a steady state allocates nothing.
#include <atomic>
#include <cstdlib>
#include <new>

#include "data/testing.h"

namespace {

std::atomic<int64_t> allocations = 0;

}  // namespace

void* operator new(size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes > 0 ? bytes : 1)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}

namespace ingot::data_testing {

int64_t allocations_so_far() {
  return allocations;
}

}  // namespace ingot::data_testing
