// The manifest of a checkpoint directory: manifest.json, written last. The format is described in docs/formats.md.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "checkpoint/box.h"

namespace ingot {

struct ManifestFile {
  std::string name;  // beside the manifest
  uint64_t bytes = 0;
  uint64_t hash = 0;  // XXH3-64
};

// A part of a tensor and where it is stored.
struct ManifestPiece {
  std::string tensor;  // its Hugging Face name
  std::string kind;    // "weight", "adam_m", "adam_v", …
  DType dtype = DType::f32;
  Shape shape;  // of the whole tensor
  Box box;      // the part that this piece holds
  std::string file;
  std::string key;  // of the tensor within that file
};

struct Manifest {
  int64_t step = 0;
  std::string layout =
      "{}";  // the parallel layout that wrote it, a JSON object; for people to read, nothing depends on it
  std::vector<ManifestFile> files;
  std::vector<ManifestPiece> pieces;  // by kind, tensor, box
};

inline constexpr std::string_view kManifestName = "manifest.json";

// The manifest's text; it ends in a checksum of all that stands before it. Sorts files and pieces.
Result<std::string> render_manifest(Manifest manifest);
// Errors (ErrorKind::input) begin with `where`. What it returns is consistent: each piece is in a listed file, and the
// pieces of each tensor and kind cover it exactly once.
Result<Manifest> parse_manifest(std::string_view text, const std::string& where);

}  // namespace ingot
