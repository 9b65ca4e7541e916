// Writes a model of random weights that are the same on every machine.
//   random_model CONFIG.json SEED DIRECTORY
#include "random_model.h"

#include <cstdio>
#include <cstdlib>

namespace ingot {
namespace {

Status write(const fs::path& config, const std::string& seed, const fs::path& directory) {
  INGOT_ASSIGN(const std::string json, read_file(config));
  return write_random_model(directory, json, std::strtoull(seed.c_str(), nullptr, 10));
}

}  // namespace
}  // namespace ingot

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: random_model CONFIG.json SEED DIRECTORY\n");
    return 2;
  }
  const auto done = ingot::write(argv[1], argv[2], argv[3]);
  if (done.ok()) return 0;
  std::fprintf(stderr, "random_model: %s\n", done.error().message.c_str());
  return static_cast<int>(done.error().kind);
}
