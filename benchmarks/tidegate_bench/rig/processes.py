"""What a process and everything that it started take of the machine, and on which of its processors they run."""

import contextlib
import os
import resource
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import psutil

from tidegate.model.errors import TidegateError

Pid = int | None


def family(pid: Pid) -> list[psutil.Process]:
    """The process and all that it started. A process that has ended has no family: what is measured is then void."""
    if pid is None:
        raise TidegateError("A process ended during the benchmark: its log says why.")
    try:
        parent = psutil.Process(pid)
        return [parent, *parent.children(recursive=True)]
    except psutil.NoSuchProcess:
        raise TidegateError(f"Process {pid} ended during the benchmark: its log says why.") from None


def families(pids: Iterable[Pid]) -> list[psutil.Process]:
    """Of several, where one may be of another's family."""
    return list({member.pid: member for pid in pids for member in family(pid)}.values())


class ProcessorTime(NamedTuple):
    """Of programs themselves, and of the kernel on their behalf."""

    user_s: float
    system_s: float


def processor_time(pid: Pid) -> ProcessorTime:
    """Of all its processes and threads so far, as the kernel counts it in /proc/<pid>/stat."""
    return processor_time_of([pid])


def processor_time_of(pids: Iterable[Pid]) -> ProcessorTime:
    """Of several and all that they started, each counted once."""
    times = [member.cpu_times() for member in families(pids)]
    return ProcessorTime(sum(each.user for each in times), sum(each.system for each in times))


def open_files_of(pids: Iterable[Pid]) -> int:
    """Sockets among them."""
    return sum(member.num_fds() for member in families(pids))


def cpu_s(pid: Pid) -> float:
    """Processor time of all its processes and threads so far."""
    return sum(processor_time(pid))


def rss_bytes(pid: Pid) -> int:
    """Resident memory of all its processes."""
    total = 0
    for member in family(pid):
        with contextlib.suppress(psutil.NoSuchProcess):
            total += int(member.memory_info().rss)
    return total


def pin(pid: Pid, processors: set[int]) -> None:
    """Keep all its threads on these processors. The kernel asks thread by thread; new ones follow those they are of."""
    for member in family(pid):
        for thread in member.threads():
            with contextlib.suppress(ProcessLookupError):
                os.sched_setaffinity(thread.id, processors)


def forget_peak(pid: Pid) -> None:
    """From now on the kernel notes anew how much memory each of them held at most."""
    for member in family(pid):
        Path(f"/proc/{member.pid}/clear_refs").write_text("5")


def peak_rss_bytes(pid: Pid) -> int:
    """The most that each of them held since then, added up: at least what they held together at any one moment."""
    peaks = []
    for member in family(pid):
        status = Path(f"/proc/{member.pid}/status").read_text().splitlines()
        peaks += [int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM:")]
    return sum(peaks)


def allow_open_files() -> None:
    """As many as may be, for this process and for what it starts: each client takes two open files of a proxy."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
