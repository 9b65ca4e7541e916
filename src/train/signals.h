// Requests to stop: SIGTERM (batch systems, mpirun), SIGINT (Ctrl-C) and SIGUSR1 set a flag that the trainer reads
// between steps, so that it saves a checkpoint and ends in order.
#pragma once

#include <string_view>

namespace ingot {

// Takes the three signals from construction to destruction, then gives them back as they were. One object at a time in
// a process. System calls that a signal interrupts go on by themselves (SA_RESTART). A second SIGINT 0.3 to five
// seconds after the first ends the process at once, by the signal's own default (a shell sees 130); files are written
// atomically, so nothing is left half-done by it.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // Any thread may ask.
  bool requested() const { return signal() != 0; }
  int signal() const;             // the first that came, 0 for none
  std::string_view name() const;  // "SIGTERM", "" for none
};

}  // namespace ingot
