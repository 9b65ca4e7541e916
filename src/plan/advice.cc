#include "plan/advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace ingot {
namespace {

double relative_size(int64_t parameters) {
  return std::max(1.0, static_cast<double>(parameters)) / 125e6;
}

// Smaller batches are noisier and want a smaller rate, by the root of their size; below a sixteenth of the usual batch
// models of this kind are known to bear what they bear there.
double rate_for_batch(const TrainingChoices& c) {
  const double batch = static_cast<double>(c.tokens_per_step) / usual_tokens_per_step(c.parameters);
  return usual_learning_rate(c.parameters) * std::clamp(std::sqrt(batch), 0.25, 1.0);
}

void check_rate(const TrainingChoices& c, std::vector<std::string>& notes) {
  // So far from the usual before it is worth a word.
  constexpr double kHigh = 6, kLow = 1.0 / 50;
  const double usual = rate_for_batch(c);
  if (c.learning_rate > kHigh * usual)
    notes.push_back(fmt::format(
        "optimizer.learning_rate {:g} is {:.0f} times what models of {:.3g} parameters are trained with at {} "
        "tokens a step (about {:.1g}): the loss may diverge",
        c.learning_rate, c.learning_rate / usual, static_cast<double>(c.parameters), c.tokens_per_step, usual));
  else if (c.pretrained && c.learning_rate > usual_learning_rate(c.parameters))
    notes.push_back(
        fmt::format("optimizer.learning_rate {:g} is above what the model was probably pre-trained with (about "
                    "{:.1g}): going on from "
                    "trained weights usually takes a tenth of that",
                    c.learning_rate, usual_learning_rate(c.parameters)));
  else if (!c.pretrained && c.learning_rate < kLow * usual)
    notes.push_back(fmt::format(
        "optimizer.learning_rate {:g} is far below what models of {:.3g} parameters are trained with (about {:.1g}): "
        "training from random weights will be slow",
        c.learning_rate, static_cast<double>(c.parameters), usual));
}

void check_warmup(const TrainingChoices& c, std::vector<std::string>& notes) {
  if (!c.total_steps) return;
  const auto steps = static_cast<double>(*c.total_steps);
  const double low = std::floor(0.01 * steps), high = std::ceil(0.03 * steps);
  const auto warmup = static_cast<double>(c.warmup_steps);
  if (warmup >= low && warmup <= high) return;
  if (c.warmup_steps > *c.total_steps) return;  // unusual_choices() says so
  notes.push_back(fmt::format("the warm-up is {} of {} steps ({:.1f}%); 1 to 3% ({:.0f} to {:.0f} steps) is usual",
                              c.warmup_steps, *c.total_steps, 100 * warmup / steps, std::max(1.0, low), high));
}

void check_batch(const TrainingChoices& c, std::vector<std::string>& notes) {
  const double usual = usual_tokens_per_step(c.parameters);
  const auto tokens = static_cast<double>(c.tokens_per_step);
  if (tokens >= usual / 256 && tokens <= 8 * usual) return;
  notes.push_back(fmt::format(
      "a step of {} tokens is far {} what models of {:.3g} parameters are trained with ({:.1g}): {}", c.tokens_per_step,
      tokens < usual ? "below" : "above", static_cast<double>(c.parameters), usual,
      tokens < usual ? "gradients will be noisy; consider a larger training.global_batch_size (it costs no memory)"
                     : "a smaller training.global_batch_size learns more from the same tokens"));
}

}  // namespace

double usual_learning_rate(int64_t parameters) {
  return std::min(3e-3, 6e-4 * std::pow(relative_size(parameters), -0.4));
}

double usual_tokens_per_step(int64_t parameters) {
  return 0.5e6 * std::pow(relative_size(parameters), 0.3);
}

std::vector<std::string> advice(const TrainingChoices& choices) {
  std::vector<std::string> notes;
  check_rate(choices, notes);
  check_warmup(choices, notes);
  check_batch(choices, notes);
  return notes;
}

}  // namespace ingot
