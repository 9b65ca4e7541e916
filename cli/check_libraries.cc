#include "check_libraries.h"

#include <fmt/core.h>
#include <link.h>
#include <spdlog/version.h>
#include <utf8proc.h>
#include <xxhash.h>

#include <hwy/highway.h>
#include <CLI/Version.hpp>
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#define ONNX_NAMESPACE onnx
#include <onnx/common/version.h>

namespace ingot::cli {
namespace {

std::string dotted(int major, int minor, int patch) {
  return fmt::format("{}.{}.{}", major, minor, patch);
}

// fmt's and xxhash's way: 10000 · major + 100 · minor + patch.
std::string from_number(int number) {
  return dotted(number / 10000, number / 100 % 100, number % 100);
}

std::string pcre2_version() {
  char text[64] = "";
  pcre2_config(PCRE2_CONFIG_VERSION, text);  // "10.42 2022-12-11"
  return std::string(text, std::strcspn(text, " "));
}

// The paths of the shared objects of this process.
std::vector<std::string> loaded_objects() {
  std::vector<std::string> paths;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* out) {
        static_cast<std::vector<std::string>*>(out)->emplace_back(info->dlpi_name);
        return 0;
      },
      &paths);
  return paths;
}

// What stands behind "libNAME.so." in a path's file name; empty where it is another's.
std::string version_in(const std::string& path, const std::string& name) {
  const std::string file = std::filesystem::path(path).filename().string(), head = "lib" + name + ".so.";
  return file.starts_with(head) ? file.substr(head.size()) : "";
}

// A shared library by its file: linked under its soname, which links to the file of the full version.
LibraryVersion shared_library(const std::string& name) {
  LibraryVersion version{name, "", ""};
  for (const std::string& path : loaded_objects()) {
    if (version_in(path, name).empty()) continue;
    version.build = version_in(path, name);
    std::error_code unresolved;  // then the soname's version is all that is known
    const auto file = std::filesystem::canonical(path, unresolved);
    version.run = unresolved ? version.build : version_in(file.string(), name);
  }
  return version;
}

}  // namespace

bool LibraryVersion::ok() const {
  const auto major = [](const std::string& version) { return version.substr(0, version.find('.')); };
  return !run.empty() && major(build) == major(run);
}

std::vector<LibraryVersion> library_versions() {
  const std::string json =
      dotted(NLOHMANN_JSON_VERSION_MAJOR, NLOHMANN_JSON_VERSION_MINOR, NLOHMANN_JSON_VERSION_PATCH);
  std::vector<LibraryVersion> versions{
      {"CLI11", CLI11_VERSION, CLI11_VERSION},
      {"fmt", from_number(FMT_VERSION), shared_library("fmt").run},
      {"gomp", "1", shared_library("gomp").run},
      {"hwy", dotted(HWY_MAJOR, HWY_MINOR, HWY_PATCH), shared_library("hwy").run},
      {"nlohmann-json", json, json},
      {"onnx", onnx::LAST_RELEASE_VERSION, shared_library("onnx").run},
      {"pcre2", fmt::format("{}.{}", PCRE2_MAJOR, PCRE2_MINOR), pcre2_version()},
      shared_library("protobuf"),
      {"spdlog", dotted(SPDLOG_VER_MAJOR, SPDLOG_VER_MINOR, SPDLOG_VER_PATCH), shared_library("spdlog").run},
      {"utf8proc", dotted(UTF8PROC_VERSION_MAJOR, UTF8PROC_VERSION_MINOR, UTF8PROC_VERSION_PATCH), utf8proc_version()},
      {"xxhash", from_number(XXH_VERSION_NUMBER), from_number(static_cast<int>(XXH_versionNumber()))},
      shared_library("yaml-cpp"),
  };
  // Linked into the program itself: it is what it was built with.
  for (LibraryVersion& version : versions)
    if (version.run.empty()) version.run = version.build.empty() ? version.build = "static" : version.build;
  return versions;
}

}  // namespace ingot::cli
