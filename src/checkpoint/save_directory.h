// The steps on disk of a checkpoint's life: written whole under its name, and removed. Errors are ErrorKind::failed.
#pragma once

#include "checkpoint/writer.h"

namespace ingot {

inline constexpr std::string_view kStateName = "state.json";

// Writes the snapshot as `directory`/step-N and returns its bytes. An error leaves nothing of it behind, and an older
// checkpoint of the same step as it was.
Result<uint64_t> save_directory(const fs::path& directory, const Snapshot& snapshot);

// Removes complete checkpoints until `keep` are left; `newest`, the step that was saved last, stays in any case. Those
// of later steps go first (they are of a run that was rewound or begun anew), then the oldest. Once that run has saved
// a checkpoint of its own, all of the later steps go: the next start would take them for the newest of this run.
enum class LaterSteps { go_first, all_go };
Status prune_checkpoints(const fs::path& directory, int keep, int64_t newest, LaterSteps later_steps);

}  // namespace ingot
