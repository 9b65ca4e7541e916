// A library to preload into a program under test (LD_PRELOAD): it counts the program's calls that change files and lets
// the N-th go wrong. The program knows nothing of it.
//
//   INGOT_FAULT_PREFIX   only calls on paths that begin with this absolute path count; without it the library does
//   nothing INGOT_FAULT_AT       the number of the call, from 1; 0 or unset: none INGOT_FAULT_MODE     kill: SIGKILL
//   before the call is made (the default)
//                        partial: as kill, but half of what the call would write is written first
//                        enospc, eio: the call fails with that error; of a write half is written first
//   INGOT_FAULT_TIMES    for enospc and eio, how many calls from the N-th on fail; 0: all. 1 by default
//   INGOT_FAULT_KIND     only calls of these kinds (by commas) count: write, sync, rename, unlink, mkdir, truncate,
//   open INGOT_FAULT_COUNT    a file that the number of counted calls is written to when the program ends
//   INGOT_FAULT_TRACE    a file that each counted call is appended to: its number, kind and path
//
// Calls that the C library makes from within (fwrite's, say) are not seen; C++ streams are.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { kPathBytes = 4096 };
enum Mode { kKill, kPartial, kFail };

static atomic_long counted;
static char prefix[kPathBytes];
static long fault_at;
static long fault_times = 1;
static enum Mode mode = kKill;
static int fault_errno;
static char only_kinds[128];
static char count_path[kPathBytes];
static char trace_path[kPathBytes];

static void copy_variable(const char* name, char* to, size_t size) {
  const char* value = getenv(name);
  if (value != NULL) snprintf(to, size, "%s", value);
}

__attribute__((constructor)) static void start(void) {
  char text[32] = "";
  copy_variable("INGOT_FAULT_PREFIX", prefix, sizeof prefix);
  copy_variable("INGOT_FAULT_KIND", only_kinds, sizeof only_kinds);
  copy_variable("INGOT_FAULT_COUNT", count_path, sizeof count_path);
  copy_variable("INGOT_FAULT_TRACE", trace_path, sizeof trace_path);
  copy_variable("INGOT_FAULT_AT", text, sizeof text);
  fault_at = atol(text);
  text[0] = 0;
  copy_variable("INGOT_FAULT_TIMES", text, sizeof text);
  if (text[0] != 0) fault_times = atol(text);
  text[0] = 0;
  copy_variable("INGOT_FAULT_MODE", text, sizeof text);
  if (strcmp(text, "partial") == 0) mode = kPartial;
  if (strcmp(text, "enospc") == 0) mode = kFail, fault_errno = ENOSPC;
  if (strcmp(text, "eio") == 0) mode = kFail, fault_errno = EIO;
}

// The library's own files are written with bare system calls, which nobody counts.
static void put_text(const char* path, const char* text, int flags) {
  const long fd = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0666);
  if (fd < 0) return;
  syscall(SYS_write, fd, text, strlen(text));
  syscall(SYS_close, fd);
}

__attribute__((destructor)) static void stop(void) {
  char text[32];
  if (count_path[0] == 0) return;
  snprintf(text, sizeof text, "%ld\n", atomic_load(&counted));
  put_text(count_path, text, O_TRUNC);
}

static int is_watched(const char* path) {
  const size_t length = strlen(prefix);
  return length > 0 && strncmp(path, prefix, length) == 0 && (path[length] == 0 || path[length] == '/');
}

static int path_of_fd(int fd, char* path) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t n = readlink(link, path, kPathBytes - 1);
  if (n < 0) return 0;
  path[n] = 0;
  return 1;
}

// The absolute form of `name`, which is relative to the directory `dirfd`.
static int path_of_name(int dirfd, const char* name, char* path) {
  char base[kPathBytes];
  if (name[0] == '/') {
    snprintf(path, kPathBytes, "%s", name);
    return 1;
  }
  if (dirfd == AT_FDCWD ? getcwd(base, sizeof base) == NULL : !path_of_fd(dirfd, base)) return 0;
  return snprintf(path, kPathBytes, "%.*s/%s", kPathBytes / 2, base, name) < kPathBytes;
}

static void die(void) {
  kill(getpid(), SIGKILL);
  for (;;) pause();
}

static int is_chosen(const char* kind) {
  const size_t length = strlen(kind);
  if (only_kinds[0] == 0) return 1;
  for (const char* at = only_kinds; at != NULL; at = strchr(at, ','), at = at == NULL ? NULL : at + 1)
    if (strncmp(at, kind, length) == 0 && (at[length] == 0 || at[length] == ',')) return 1;
  return 0;
}

// Counts a call; says whether it is to go wrong.
static int falls_on(const char* kind, const char* path) {
  if (!is_watched(path) || !is_chosen(kind)) return 0;
  const long number = atomic_fetch_add(&counted, 1) + 1;
  if (trace_path[0] != 0) {
    char line[kPathBytes + 64];
    snprintf(line, sizeof line, "%ld %s %s\n", number, kind, path);
    put_text(trace_path, line, O_APPEND);
  }
  if (fault_at <= 0 || number < fault_at) return 0;
  return mode == kFail ? fault_times <= 0 || number < fault_at + fault_times : number == fault_at;
}

// For calls that either happen or do not. 1: it must fail with errno as set.
static int strikes(const char* kind, const char* path) {
  const int saved = errno;
  const int hit = falls_on(kind, path);
  errno = saved;
  if (!hit) return 0;
  if (mode != kFail) die();
  errno = fault_errno;
  return 1;
}
static int strikes_name(const char* kind, int dirfd, const char* name) {
  char path[kPathBytes];
  return prefix[0] != 0 && path_of_name(dirfd, name, path) && strikes(kind, path);
}
static int strikes_fd(const char* kind, int fd) {
  char path[kPathBytes];
  const int saved = errno;
  const int known = prefix[0] != 0 && path_of_fd(fd, path);
  errno = saved;
  return known && strikes(kind, path);
}
static int write_strikes(int fd) {
  char path[kPathBytes];
  const int saved = errno;
  const int hit = prefix[0] != 0 && path_of_fd(fd, path) && falls_on("write", path);
  errno = saved;
  if (hit && mode == kKill) die();
  return hit;
}

// The C library's own function of the name.
#define REAL(result, name, ...)       \
  static result (*real)(__VA_ARGS__); \
  if (real == NULL) *(void**)&real = dlsym(RTLD_NEXT, #name)

// What a struck write gives back: half of it is written; then the process dies, or what was written is reported, or,
// where that is nothing, the error. A caller that goes on writing meets the error only with INGOT_FAULT_TIMES other
// than 1.
#define STRUCK_WRITE(size, half_write)                         \
  do {                                                         \
    const ssize_t written = (size) / 2 > 0 ? (half_write) : 0; \
    if (mode == kPartial) die();                               \
    if (fault_times != 1 && written > 0) return written;       \
    errno = fault_errno;                                       \
    return -1;                                                 \
  } while (0)

ssize_t write(int fd, const void* data, size_t size) {
  REAL(ssize_t, write, int, const void*, size_t);
  if (write_strikes(fd)) STRUCK_WRITE(size, real(fd, data, size / 2));
  return real(fd, data, size);
}

#define DEFINE_PWRITE(name, offset_type)                                         \
  ssize_t name(int fd, const void* data, size_t size, offset_type offset) {      \
    REAL(ssize_t, name, int, const void*, size_t, offset_type);                  \
    if (write_strikes(fd)) STRUCK_WRITE(size, real(fd, data, size / 2, offset)); \
    return real(fd, data, size, offset);                                         \
  }
DEFINE_PWRITE(pwrite, off_t)
DEFINE_PWRITE(pwrite64, off64_t)

ssize_t writev(int fd, const struct iovec* parts, int count) {
  REAL(ssize_t, writev, int, const struct iovec*, int);
  if (write_strikes(fd)) STRUCK_WRITE(count, real(fd, parts, count / 2));
  return real(fd, parts, count);
}

#define DEFINE_SYNC(name)                          \
  int name(int fd) {                               \
    REAL(int, name, int);                          \
    return strikes_fd("sync", fd) ? -1 : real(fd); \
  }
DEFINE_SYNC(fsync)
DEFINE_SYNC(fdatasync)

#define DEFINE_FTRUNCATE(name, offset_type)                  \
  int name(int fd, offset_type size) {                       \
    REAL(int, name, int, offset_type);                       \
    return strikes_fd("truncate", fd) ? -1 : real(fd, size); \
  }
DEFINE_FTRUNCATE(ftruncate, off_t)
DEFINE_FTRUNCATE(ftruncate64, off64_t)

int rename(const char* from, const char* to) {
  REAL(int, rename, const char*, const char*);
  return strikes_name("rename", AT_FDCWD, to) ? -1 : real(from, to);
}
int renameat(int from_fd, const char* from, int to_fd, const char* to) {
  REAL(int, renameat, int, const char*, int, const char*);
  return strikes_name("rename", to_fd, to) ? -1 : real(from_fd, from, to_fd, to);
}
int renameat2(int from_fd, const char* from, int to_fd, const char* to, unsigned flags) {
  REAL(int, renameat2, int, const char*, int, const char*, unsigned);
  return strikes_name("rename", to_fd, to) ? -1 : real(from_fd, from, to_fd, to, flags);
}

int unlink(const char* path) {
  REAL(int, unlink, const char*);
  return strikes_name("unlink", AT_FDCWD, path) ? -1 : real(path);
}
int unlinkat(int dirfd, const char* name, int flags) {
  REAL(int, unlinkat, int, const char*, int);
  return strikes_name("unlink", dirfd, name) ? -1 : real(dirfd, name, flags);
}
int rmdir(const char* path) {
  REAL(int, rmdir, const char*);
  return strikes_name("unlink", AT_FDCWD, path) ? -1 : real(path);
}
int remove(const char* path) {
  REAL(int, remove, const char*);
  return strikes_name("unlink", AT_FDCWD, path) ? -1 : real(path);
}

int mkdir(const char* path, mode_t permissions) {
  REAL(int, mkdir, const char*, mode_t);
  return strikes_name("mkdir", AT_FDCWD, path) ? -1 : real(path, permissions);
}
int mkdirat(int dirfd, const char* name, mode_t permissions) {
  REAL(int, mkdirat, int, const char*, mode_t);
  return strikes_name("mkdir", dirfd, name) ? -1 : real(dirfd, name, permissions);
}

static mode_t permissions_of(int flags, va_list arguments) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? (mode_t)va_arg(arguments, int) : 0;
}
#define DEFINE_OPEN(name)                                                                                        \
  int name(const char* path, int flags, ...) {                                                                   \
    REAL(int, name, const char*, int, ...);                                                                      \
    va_list arguments;                                                                                           \
    va_start(arguments, flags);                                                                                  \
    const mode_t permissions = permissions_of(flags, arguments);                                                 \
    va_end(arguments);                                                                                           \
    return (flags & O_CREAT) != 0 && strikes_name("open", AT_FDCWD, path) ? -1 : real(path, flags, permissions); \
  }
DEFINE_OPEN(open)
DEFINE_OPEN(open64)

#define DEFINE_OPENAT(name)                                                                                          \
  int name(int dirfd, const char* path, int flags, ...) {                                                            \
    REAL(int, name, int, const char*, int, ...);                                                                     \
    va_list arguments;                                                                                               \
    va_start(arguments, flags);                                                                                      \
    const mode_t permissions = permissions_of(flags, arguments);                                                     \
    va_end(arguments);                                                                                               \
    return (flags & O_CREAT) != 0 && strikes_name("open", dirfd, path) ? -1 : real(dirfd, path, flags, permissions); \
  }
DEFINE_OPENAT(openat)
DEFINE_OPENAT(openat64)

#define DEFINE_FOPEN(name)                                                                 \
  FILE* name(const char* path, const char* how) {                                          \
    REAL(FILE*, name, const char*, const char*);                                           \
    return how[0] != 'r' && strikes_name("open", AT_FDCWD, path) ? NULL : real(path, how); \
  }
DEFINE_FOPEN(fopen)
DEFINE_FOPEN(fopen64)
