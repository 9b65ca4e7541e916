#include "data/sources.h"

#include <glob.h>

#include <algorithm>
#include <cctype>

#include "data/shards.h"

namespace ingot {
namespace {

constexpr const char* kKinds =
    "a .txt, .jsonl or .csv file, a directory or glob of such files, or a directory of shards";

std::string lower_extension(const fs::path& path) {
  std::string extension = path.extension().string();
  for (char& c : extension) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return extension;
}

Result<std::vector<fs::path>> files_below(const fs::path& directory) {
  std::vector<fs::path> files;
  std::error_code problem;
  auto entry = fs::recursive_directory_iterator(directory, fs::directory_options::follow_directory_symlink, problem);
  for (; !problem && entry != fs::recursive_directory_iterator(); entry.increment(problem)) {
    std::error_code ignored;  // a file that vanished meanwhile is no file
    if (entry->is_regular_file(ignored) && format_of(entry->path())) files.push_back(entry->path());
  }
  if (problem) return input_error("cannot read the directory {}: {}", directory.string(), problem.message());
  if (files.empty())
    return input_error("the directory {} holds no .txt, .jsonl or .csv file; expected {}", directory.string(), kKinds);
  return files;
}

Result<std::vector<fs::path>> files_matching(const std::string& pattern) {
  glob_t matches{};
  const int status = ::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &matches);
  std::vector<fs::path> files(matches.gl_pathv, matches.gl_pathv + matches.gl_pathc);
  ::globfree(&matches);
  if (status == GLOB_NOSPACE) return failed_error("out of memory while looking for the files of {}", pattern);
  std::erase_if(files, [](const fs::path& path) {
    std::error_code ignored;
    return fs::is_directory(path, ignored);
  });
  const bool is_pattern = pattern.find_first_of("*?[") != std::string::npos;
  if (files.empty() && is_pattern) return input_error("no file matches {}; expected {}", pattern, kKinds);
  if (files.empty()) return input_error("{} does not exist; expected {}", pattern, kKinds);
  return files;
}

}  // namespace

std::optional<FileFormat> format_of(const fs::path& path) {
  const std::string extension = lower_extension(path);
  if (extension == ".txt") return FileFormat::text;
  if (extension == ".jsonl") return FileFormat::jsonl;
  if (extension == ".csv") return FileFormat::csv;
  return std::nullopt;
}

Result<SourceFiles> find_source_files(const SourceSpec& spec) {
  if (spec.path.empty()) return usage_error("a data source has no path; expected {}", kKinds);
  SourceFiles found;
  std::error_code ignored;  // what cannot be looked at does not exist, and is named below
  if (ShardSet::is_shard_directory(spec.path)) {
    found.is_shards = true;
    return found;
  }
  if (fs::is_directory(spec.path, ignored)) {
    INGOT_ASSIGN(found.files, files_below(spec.path));
  } else if (fs::exists(spec.path, ignored)) {  // before it is taken as a pattern: a name may hold brackets
    found.files.emplace_back(spec.path);
  } else {
    INGOT_ASSIGN(found.files, files_matching(spec.path));
  }
  std::sort(found.files.begin(), found.files.end(),
            [](const fs::path& a, const fs::path& b) { return a.native() < b.native(); });
  for (const fs::path& file : found.files)
    if (!format_of(file)) return input_error("{} is of an unknown kind; expected {}", file.string(), kKinds);
  return found;
}

}  // namespace ingot
