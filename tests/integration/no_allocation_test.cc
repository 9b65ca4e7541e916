// A training step takes no memory: nothing is allocated and no page is touched for the first time after the first
// steps. Every allocation of this program goes through the functions here, which count while they are asked to.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <functional>

#include "base/system.h"
#include "runtime/profile.h"
#include "train/config.h"
#include "training_testing.h"

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define INGOT_COUNTS_ALLOCATIONS 1
#else
#define INGOT_COUNTS_ALLOCATIONS 0
#endif

namespace {

std::atomic<bool> counting = false;
std::atomic<int64_t> allocations = 0;

#if INGOT_COUNTS_ALLOCATIONS
void count() {
  if (counting.load(std::memory_order_relaxed)) ++allocations;
}
#endif

}  // namespace

#if INGOT_COUNTS_ALLOCATIONS
extern "C" {
// glibc's own functions under their second names.
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* memory, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void* memory);

void* malloc(size_t bytes) noexcept {
  count();
  return __libc_malloc(bytes);
}
void* calloc(size_t items, size_t bytes) noexcept {
  count();
  return __libc_calloc(items, bytes);
}
void* realloc(void* memory, size_t bytes) noexcept {
  count();
  return __libc_realloc(memory, bytes);
}
void* memalign(size_t alignment, size_t bytes) noexcept {
  count();
  return __libc_memalign(alignment, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) noexcept {
  count();
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** memory, size_t alignment, size_t bytes) noexcept {
  count();
  *memory = __libc_memalign(alignment, bytes);
  return *memory != nullptr ? 0 : ENOMEM;
}
void free(void* memory) noexcept {
  __libc_free(memory);
}
}
#endif

namespace ingot::integration {
namespace {

int64_t allocations_of(const std::function<void()>& body) {
  allocations = 0;
  counting = true;
  body();
  counting = false;
  return allocations;
}

class NoAllocation : public ::testing::TestWithParam<std::tuple<std::string, int, OptimizerType>> {};

TEST_P(NoAllocation, FromTheThirdStepOn) {
  const auto& [family, threads, optimizer] = GetParam();
  constexpr int64_t rows = 2, tokens = 67, vocabulary = 1009;
  ProgramSettings settings;
  settings.rows = rows;
  settings.tokens = tokens;
  settings.optimizer = default_optimizer(optimizer);
  Training training(small_model(family, 0.1, vocabulary), settings, threads);
  const Batch batch = random_batch(rows, tokens, vocabulary, 1, 10);
  const float scale = 1.0f / static_cast<float>(2 * batch.counted);
  TrainingPrograms& programs = training.programs();
  int64_t t = 0;
  bool ok = true;
  Profile profile(threads, 100'000, 1000);
  const NodeObserver* observer = nullptr;
  const auto step = [&] {
    ++t;
    const RandomState random{11, static_cast<uint64_t>(t), 0, rows};
    ok = ok && programs.micro_step(batch, scale, false, random, observer).ok();
    ok = ok && programs.micro_step(batch, scale, true, {11, static_cast<uint64_t>(t), rows, rows}, observer).ok();
    ok = ok && programs.update(1e-3, t, observer).ok();
  };
  step();
  step();
#if INGOT_COUNTS_ALLOCATIONS
  EXPECT_GT(allocations_of([] { std::vector<int>(100).swap(*std::make_unique<std::vector<int>>()); }), 0);
#endif
  for (int i = 0; i < 3; ++i) EXPECT_EQ(allocations_of(step), 0) << "step " << t;
  for (int i = 0; i < 3; ++i) {
    const uint64_t before = minor_page_faults();
    step();
    EXPECT_EQ(minor_page_faults() - before, 0u) << "step " << t;
  }
  observer = &profile.observer();
  for (int i = 0; i < 3; ++i) {
    profile.begin_step(t + 1);
    EXPECT_EQ(allocations_of(step), 0) << "profiled step " << t;
    profile.end_step();
  }
  EXPECT_GT(profile.op_count(), 0u);
  EXPECT_EQ(profile.dropped(), 0);
  EXPECT_TRUE(ok);
}

std::string name_of_case(const testing::TestParamInfo<NoAllocation::ParamType>& one) {
  return fmt::format("{}_on_{}_{}", std::get<0>(one.param), std::get<1>(one.param), name_of(std::get<2>(one.param)));
}

INSTANTIATE_TEST_SUITE_P(Models, NoAllocation,
                         ::testing::Combine(::testing::Values("gpt2", "llama"), ::testing::Values(1, 2),
                                            ::testing::Values(OptimizerType::adamw)),
                         name_of_case);
INSTANTIATE_TEST_SUITE_P(Optimizers, NoAllocation,
                         ::testing::Combine(::testing::Values("llama"), ::testing::Values(2),
                                            ::testing::Values(OptimizerType::lion, OptimizerType::adafactor,
                                                              OptimizerType::muon, OptimizerType::adamw_8bit)),
                         name_of_case);

}  // namespace
}  // namespace ingot::integration
