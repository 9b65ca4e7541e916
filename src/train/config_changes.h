// What a run that goes on does differently from the one that saved its checkpoint.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace ingot {

// The keys of two resolved configurations (to_yaml) that differ among those that bear on what is learned: seed, data,
// training, optimizer and schedule, without the run's length. One line each: "optimizer.eps was 1e-08, now 1e-06".
std::vector<std::string> changed_settings(const std::string& before, const std::string& now);

// Error (usage) that names the keys where two config.json (of the checkpoint, of the model that the run would train)
// differ; `where` is the checkpoint.
Status check_same_model(const std::string& before, const std::string& now, const std::string& where);

// The same for the keys of two resolved configurations that what a checkpoint holds depends on: another optimizer keeps
// another state, and a position in the data means something in one order of one kind of sequences alone.
Status check_can_go_on(const std::string& before, const std::string& now, const std::string& where);

}  // namespace ingot
