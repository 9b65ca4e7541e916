#include "runtime/arena.h"

#include <sys/mman.h>

#include <cstring>

namespace ingot {
namespace {

constexpr int64_t kHugePage = 2 << 20;

}  // namespace

Result<Block> Block::create(int64_t bytes, const ThreadPool& pool) {
  Block block;
  if (bytes <= 0) return block;
  const int64_t size = (bytes + kHugePage - 1) / kHugePage * kHugePage;
  void* address = ::mmap(nullptr, static_cast<size_t>(size + kHugePage), PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED)
    return usage_error("the system does not give {} MB of memory: {}; use a smaller model, batch or sequence length",
                       size >> 20, std::strerror(errno));
  // Keep the part that starts on a huge page's edge.
  auto* begin = static_cast<std::byte*>(address);
  const auto shift = static_cast<int64_t>(kHugePage - reinterpret_cast<uintptr_t>(begin) % kHugePage) % kHugePage;
  if (shift > 0) ::munmap(begin, static_cast<size_t>(shift));
  if (shift < kHugePage) ::munmap(begin + shift + size, static_cast<size_t>(kHugePage - shift));
  begin += shift;
  block.data_ = {begin, static_cast<size_t>(size)};
  ::madvise(begin, static_cast<size_t>(size),
            MADV_HUGEPAGE);  // without it the block works all the same, in small pages
  pool.run(size / kHugePage, [&](int64_t page, int) {
    for (int64_t at = 0; at < kHugePage; at += 4096) begin[page * kHugePage + at] = std::byte{0};
  });
  return block;
}

Block::~Block() {
  if (!data_.empty()) ::munmap(data_.data(), data_.size());
}

Result<Arena> Arena::create(VariableLayout variables, const ThreadPool& pool) {
  Arena arena;
  INGOT_ASSIGN(arena.persistent_, Block::create(variables.bytes(), pool));
  arena.variables_ = std::move(variables);
  return arena;
}

Status Arena::reserve(int64_t workspace_bytes, int64_t scratch_bytes_a_thread, const ThreadPool& pool) {
  if (workspace_bytes > workspace_.bytes()) {
    workspace_ = Block();  // give the old one back before the larger one is taken
    INGOT_ASSIGN(workspace_, Block::create(workspace_bytes, pool));
  }
  const int64_t stride = std::max(scratch_stride_, align_up(scratch_bytes_a_thread));
  if (stride * pool.threads() > scratch_.bytes()) {
    scratch_ = Block();
    INGOT_ASSIGN(scratch_, Block::create(stride * pool.threads(), pool));
  }
  scratch_stride_ = stride;
  return {};
}

TensorView Arena::variable(std::string_view name) const {
  const Variable* variable = variables_.find(name);
  INGOT_CHECK(variable != nullptr, "there is no variable {}", name);
  return {persistent_.data() + variable->offset, variable->type.dtype, variable->type.shape};
}

}  // namespace ingot
