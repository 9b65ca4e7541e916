#include "base/check.h"

namespace ingot {

void report_bug(const char* file, int line, const char* condition, const std::string& message) {
  throw BugError(fmt::format("internal error at {}:{}: {} (expected {})", file, line, message, condition));
}

}  // namespace ingot
