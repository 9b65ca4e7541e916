#include "kernels/instruction_set.h"

#include <fmt/ranges.h>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/instruction_set.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace ingot::kernels::HWY_NAMESPACE {
namespace {
int64_t this_target() {
  return HWY_TARGET;
}
}  // namespace
}  // namespace ingot::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ingot::kernels {
namespace {
HWY_EXPORT(this_target);

// Choosing a set narrows what Highway calls supported, so the CPU's own list is read once, before that.
const std::vector<int64_t>& all_targets() {
  static const std::vector<int64_t> targets = hwy::SupportedAndGeneratedTargets();
  return targets;
}
}  // namespace

std::vector<std::string> all_instruction_sets() {
  std::vector<std::string> names;
  for (int64_t target : all_targets()) names.emplace_back(hwy::TargetName(target));
  return names;
}

std::string instruction_set() {
  return hwy::TargetName(HWY_DYNAMIC_DISPATCH(this_target)());
}

Status choose_instruction_set(std::string_view name) {
  for (int64_t target : all_targets()) {
    if (name != hwy::TargetName(target)) continue;
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    return {};
  }
  return usage_error("instruction set \"{}\" is not one that this program has and this CPU can run: {}", name,
                     fmt::join(all_instruction_sets(), ", "));
}

bool has_avx512_bf16() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}

}  // namespace ingot::kernels
#endif  // HWY_ONCE
