// The libraries that this program uses: the version that it was built with and the one that it runs with.
#pragma once

#include <string>
#include <vector>

namespace ingot::cli {

struct LibraryVersion {
  std::string name;
  std::string build;  // of the headers, or of the library that was linked
  std::string run;    // of the library that is loaded; that of the build where all of it is in headers
  bool ok() const;    // the same major version
};

std::vector<LibraryVersion> library_versions();

}  // namespace ingot::cli
