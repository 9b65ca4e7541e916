// The smallest program that saves and resumes as a training run does, to prove the crash tests and the checkpoints
// with:
//   save_loop OUTPUT_DIR STEPS EVERY KEEP [wait]
// Its state after N steps depends on N alone. It resumes from the newest checkpoint in OUTPUT_DIR and ends by writing
// OUTPUT_DIR/final.bin. `wait`: saves are waited for. A save that fails is passed over, as in training.
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/rng.h"
#include "checkpoint/reader.h"
#include "checkpoint/writer.h"

namespace ingot {
namespace {

constexpr size_t kWeights = 1000;

struct Run {
  fs::path output;
  int64_t steps = 0, every = 1, step = 0;
  std::optional<int64_t> resumed;
  std::vector<float> weights = std::vector<float>(kWeights, 1.0f), momentum = std::vector<float>(kWeights);

  void advance() {
    ++step;
    for (size_t i = 0; i < kWeights; ++i) {
      const float gradient = uniform_from_bits(philox(i, static_cast<uint64_t>(step))[0]) - 0.5f * weights[i];
      momentum[i] = 0.9f * momentum[i] + gradient;
      weights[i] += 0.01f * momentum[i];
    }
  }

  TensorView view(std::vector<float>& values) const {
    return {reinterpret_cast<std::byte*>(values.data()), DType::f32, Shape{10, kWeights / 10}};
  }

  Status resume() {
    INGOT_ASSIGN(const auto checkpoint, find_newest_checkpoint(output / "checkpoints"));
    if (!checkpoint) return {};
    resumed = checkpoint->step();
    INGOT_ASSIGN(const std::string state, checkpoint->read_file("state.json"));
    step = nlohmann::json::parse(state).at("step").get<int64_t>();
    INGOT_TRY(checkpoint->read_tensor("w", "weight", view(weights)));
    return checkpoint->read_tensor("w", "adam_m", view(momentum));
  }

  Snapshot snapshot() {
    Snapshot result;
    result.step = step;
    result.state = nlohmann::json{{"step", step}}.dump();
    result.files = {{"config.json", "{}"}};
    result.pieces = {whole_piece("w", "weight", view(weights)), whole_piece("w", "adam_m", view(momentum))};
    return result;
  }

  Status run(int keep, bool background) {
    INGOT_TRY(remove_abandoned_files(output));
    INGOT_TRY(resume());
    INGOT_ASSIGN(const auto writer, CheckpointWriter::create({output / "checkpoints", keep, background, resumed}));
    while (step < steps) {
      advance();
      // A save that fails has been reported and costs only itself.
      if (step % every == 0) (void)writer->save(snapshot());
    }
    (void)writer->wait();
    return write_file_atomic(output / "final.bin", {reinterpret_cast<const char*>(weights.data()), 4 * kWeights});
  }
};

int main(int argc, char** argv) {
  if (argc < 5) return static_cast<int>(ErrorKind::usage);
  Run run;
  run.output = argv[1];
  run.steps = std::atoll(argv[2]);
  run.every = std::atoll(argv[3]);
  const Status status = run.run(std::atoi(argv[4]), argc == 5);
  if (status.ok()) return 0;
  std::fprintf(stderr, "error: %s\n", status.error().message.c_str());
  return static_cast<int>(status.error().kind);
}

}  // namespace
}  // namespace ingot

int main(int argc, char** argv) {
  return ingot::main(argc, argv);
}
