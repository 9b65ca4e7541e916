#include <algorithm>
#include <mutex>

#include "models/families.h"

namespace ingot {
namespace {

// The built-in families and, after them, those that the program has registered: the one list that grows.
struct Registry {
  std::mutex mutex;
  std::vector<std::shared_ptr<const Family>> families;

  Registry() {
    for (Family family :
         {gpt2_family(), llama_family(), mistral_family(), qwen2_family(), qwen3_family(), gemma2_family()})
      families.push_back(std::make_shared<const Family>(std::move(family)));
  }
  // By name or architecture.
  std::shared_ptr<const Family> find(std::string_view name) const {
    for (const auto& family : families)
      if (family->name == name || std::ranges::find(family->architectures, name) != family->architectures.end())
        return family;
    return nullptr;
  }
};

Registry& registry() {
  static Registry instance;
  return instance;
}

}  // namespace

Result<std::string> register_family(Family family, NameTaken taken) {
  INGOT_CHECK(family.read_config && family.parameters && family.build, "the family {} lacks a function", family.name);
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const auto is_taken = [&](const std::string& name) { return all.find(name) != nullptr; };
  if (taken == NameTaken::refuse) {
    std::vector<std::string> names = family.architectures;
    names.insert(names.begin(), family.name);
    for (const std::string& name : names)
      if (const auto other = all.find(name))
        return usage_error("the model family {} of {} cannot be registered: {} is taken by the family {} of {}",
                           family.name, family.owner, name, other->name, other->owner);
  }
  const std::string wanted = family.name;
  for (int k = 2; is_taken(family.name); ++k) family.name = fmt::format("{}-{}", wanted, k);
  std::erase_if(family.architectures, is_taken);
  all.families.push_back(std::make_shared<const Family>(std::move(family)));
  return all.families.back()->name;
}

std::shared_ptr<const Family> find_family(std::string_view name) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  return all.find(name);
}

std::vector<std::string> family_names() {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  std::vector<std::string> names;
  for (const auto& family : all.families) names.push_back(family->name);
  return names;
}

}  // namespace ingot
