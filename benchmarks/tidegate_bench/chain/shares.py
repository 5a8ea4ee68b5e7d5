"""How many processors each part of the chain keeps busy, and from that which part bounds it."""

import os
from collections.abc import Mapping
from typing import Any, cast

import psutil

from tidegate.brokers.nats.embedded import EmbeddedBrokers
from tidegate.local.chain import Chain
from tidegate_bench.rig import processes
from tidegate_bench.rig.nodes import kind_of

# A node's processes by what they do; its first one is the driver.
NODE_PARTS = ("driver", "jvm", "workers", "planner")
_PART_OF = {"JVM": "jvm", "worker": "workers", "planner": "planner", "other": "planner"}
INTO_LOG, INTO_TABLE = "into the log", "from the log into the tables"
# Which parts work on which half of the way. Brokers store on the first and are read from on the second.
WORKS_ON = {INTO_LOG: ("gateway", "brokers"), INTO_TABLE: (*NODE_PARTS, "brokers")}
# Below this share of all processors idle, nothing can be had by waiting.
IDLE_SHARE_MIN = 0.1
# A load that uses more of its one processor than this may be what is measured.
LOAD_SHARE_MAX = 0.8

CpuSeconds = dict[str, float]


def cpu_s(chain: Chain, load: int | None) -> CpuSeconds:
    """Processor time so far of every part, of this process, and of the machine as a whole."""
    used: CpuSeconds = dict.fromkeys(("gateway", "brokers", "bus", *NODE_PARTS, "controller", "maintainer"), 0.0)
    pids = cast(EmbeddedBrokers, chain.brokers).pids()
    brokers = len(chain.installation.mqtt_addresses)
    used["brokers"] = sum(map(processes.cpu_s, pids[:brokers]))
    used["bus"] = sum(map(processes.cpu_s, pids[brokers:]))
    for name, part in chain.parts.items():
        if name.startswith("node-"):
            first, *others = processes.family(part.pid)
            used["driver"] += _own_s(first)
            for member in others:
                used[_PART_OF[kind_of(member)]] += _own_s(member)
        else:
            used[name.partition("-")[0]] += processes.cpu_s(part.pid)
    used["load"] = processes.cpu_s(load)
    used["measuring"] = sum(os.times()[:2])
    machine = psutil.cpu_times()
    used["idle"], used["waiting_for_disk"] = machine.idle, machine.iowait
    return used


def _own_s(process: psutil.Process) -> float:
    try:
        return float(sum(process.cpu_times()[:2]))
    except psutil.NoSuchProcess:
        return 0.0


def shares(before: Mapping[str, float], after: Mapping[str, float], seconds: float) -> dict[str, float]:
    """Processors kept busy by each part between two looks; ``others`` is all that is no part of the chain."""
    found = {name: round(max(0.0, after[name] - before[name]) / seconds, 3) for name in after}
    processors = len(os.sched_getaffinity(0))
    found["others"] = round(max(0.0, processors - sum(found.values())), 3)
    return found


def bottleneck(row: Mapping[str, Any], processors: int) -> tuple[str, str]:
    """Which part bounds the chain, and why, from an attempt at the border of what it can do.

    Readings queue up before the part that is too slow, so the half of the way that takes longer says where to look.
    There it is the busiest part, or the disk where parts wait although processors are free.
    """
    half = INTO_LOG if row["into_log_s_p99"] >= row["into_table_s_p99"] else INTO_TABLE
    share = row["shares"]
    took_s = max(row["into_log_s_p99"], row["into_table_s_p99"])
    where = f"readings wait {half} ({took_s:.2f} s of {row['age_s_p99']:.2f} s at p99)"
    if share["load"] > LOAD_SHARE_MAX:
        return "load", f"the load itself keeps {share['load']:.2f} processors busy: what it can do was measured"
    if share["idle"] + share["waiting_for_disk"] < IDLE_SHARE_MIN * processors:
        parts = {name: share[name] for name in ("gateway", "brokers", *NODE_PARTS)}
        busiest = max(parts, key=lambda name: parts[name])
        return busiest, f"no processor is free, and it uses most of them ({parts[busiest]:.2f}); {where}"
    busiest = max(WORKS_ON[half], key=lambda name: share[name])
    free = f"{share['idle'] + share['waiting_for_disk']:.2f} processors are free"
    if row["durability"] == "power-loss" and share["waiting_for_disk"] > IDLE_SHARE_MIN and share[busiest] < 0.8:
        return "disk", f"{free}, {share['waiting_for_disk']:.2f} of them because a write is awaited; {where}"
    return busiest, f"{free}, so it waits more than it works ({share[busiest]:.2f} processors); {where}"
