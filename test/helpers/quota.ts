import { execFileSync } from "node:child_process";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { unless } from "./machine.js";
import { tempDir } from "./temp-dir.js";

/**
 * Refuses, as a file system does whose quota is used up, what would make a file of the directory longer, or make a new
 * one: the call itself fails, and everything behind it meets the error that Node makes of its number.
 */
const SOURCE = `
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int is_ours(const char *path) {
  const char *directory = getenv("QUOTA_DIRECTORY");
  const char *used_up = getenv("QUOTA_USED_UP");
  return directory && used_up && strncmp(path, directory, strlen(directory)) == 0 && access(used_up, F_OK) == 0;
}

ssize_t pwrite64(int file, const void *bytes, size_t length, off64_t position) {
  static ssize_t (*next)(int, const void *, size_t, off64_t);
  if (!next) next = dlsym(RTLD_NEXT, "pwrite64");
  char link[64], path[PATH_MAX];
  struct stat64 stats;
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t end = readlink(link, path, sizeof path - 1);
  if (end > 0) {
    path[end] = 0;
    if (is_ours(path) && fstat64(file, &stats) == 0 && position + (off64_t)length > stats.st_size) {
      errno = EDQUOT;
      return -1;
    }
  }
  return next(file, bytes, length, position);
}

int open64(const char *path, int flags, ...) {
  static int (*next)(const char *, int, ...);
  if (!next) next = dlsym(RTLD_NEXT, "open64");
  va_list more;
  va_start(more, flags);
  int mode = flags & O_CREAT ? va_arg(more, int) : 0;
  va_end(more);
  if ((flags & O_CREAT) && access(path, F_OK) != 0 && is_ours(path)) {
    errno = EDQUOT;
    return -1;
  }
  return next(path, flags, mode);
}
`;

/** Why a test that compiles a library for the process to load is left out, if it is. */
export const lacksCompiler =
  process.platform === "linux"
    ? unless(["cc", "--version"], "put a library before the system's (Linux, a C compiler)")
    : "only Linux takes a library before the system's";

/** A quota on a directory, for a process that is started under it. */
export interface Quota {
  /** What the process is started under. */
  readonly under: readonly string[];
  /** Uses the quota up; returns what raises it again. */
  useUp(): () => void;
}

/** A quota on all that is below `directory`, which a process started under it meets in its own system calls. */
export function quotaOn(directory: string): Quota {
  const place = tempDir();
  const library = join(place, "quota.so");
  const usedUp = join(place, "used-up");
  execFileSync("cc", ["-shared", "-fPIC", "-O1", "-o", library, "-xc", "-", "-ldl"], { input: SOURCE });
  return {
    under: ["env", `LD_PRELOAD=${library}`, `QUOTA_DIRECTORY=${directory}`, `QUOTA_USED_UP=${usedUp}`],
    useUp: () => {
      writeFileSync(usedUp, "");
      return () => rmSync(usedUp);
    },
  };
}
