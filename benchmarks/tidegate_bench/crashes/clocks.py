"""Wall clocks that step in our processes and nowhere else: a library that is loaded before all others adds an offset.

Python, Delta's Rust and the JVM all ask the C library, so one shim serves them. The clock that never goes back stays as
it is, and so do the times of files: as where tables lie on another machine.
"""

import os
import struct
import subprocess
from pathlib import Path

from tidegate.model.errors import UserError
from tidegate_bench.rig.programs import installed

AHEAD_S, BEHIND_S = 40 * 86_400, -3_600
SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *offset_s;

__attribute__((constructor)) static void open_offset(void) {
  const char *path = getenv("TIDEGATE_BENCH_CLOCK");
  int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  if (file < 0) return;
  void *mapped = mmap(NULL, sizeof *offset_s, PROT_READ, MAP_SHARED, file, 0);
  close(file);
  if (mapped != MAP_FAILED) offset_s = mapped;
}

int clock_gettime(clockid_t clock, struct timespec *at) {
  static int (*real)(clockid_t, struct timespec *);
  if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
  int failed = real(clock, at);
  if (!failed && offset_s && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) at->tv_sec += *offset_s;
  return failed;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone) {
  struct timespec now;
  (void)zone;
  if (clock_gettime(CLOCK_REALTIME, &now)) return -1;
  at->tv_sec = now.tv_sec;
  at->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *at) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (at) *at = now.tv_sec;
  return now.tv_sec;
}
"""


class Clocks:
    """One offset per part, in a file that its processes have mapped: a step is there at once."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self._library = _built(directory)

    def environment(self, part: str) -> dict[str, str]:
        path = self._directory / part
        path.write_bytes(struct.pack("q", 0))
        return {"LD_PRELOAD": str(self._library), "TIDEGATE_BENCH_CLOCK": str(path)}

    def step(self, part: str, seconds: int) -> None:
        """So far from the machine's own clock from now on; 0 brings it back."""
        descriptor = os.open(self._directory / part, os.O_WRONLY)
        try:
            os.pwrite(descriptor, struct.pack("q", seconds), 0)
        finally:
            os.close(descriptor)


def _built(directory: Path) -> Path:
    source, library = directory / "clock.c", directory / "clock.so"
    source.write_text(SOURCE)
    command = [installed("cc", "gcc"), "-O2", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    if built.returncode:
        raise UserError(f"The clock that steps could not be compiled ({built.stderr.strip()[:200]}): see {source}.")
    return library
