"""The demo's devices: a ``tidegate fleet`` as a process of its own."""

import sys
import time
from pathlib import Path
from typing import Any

from tidegate.demo.script import Script
from tidegate.local.talking import TalkingProcess

STOP_S_MAX = 8.0
SUMMARY_S_MAX = 5.0


class FleetProcess(TalkingProcess):
    """Started at once; it follows the pattern, and sums up at its end."""

    def __init__(self, state: Path, acks: Path, pattern: str, script: Script, *options: str) -> None:
        command = [sys.executable, "-m", "tidegate.cli.main", "fleet", "--state", str(state), "--acks", str(acks)]
        command += ["--pattern", pattern, "--interval", str(script.interval_s), "--seed", str(script.seed), "--json"]
        command += ["--deaf", str(script.deaf)] if script.deaf else []
        super().__init__("fleet", [*command, *options], log=state / "logs" / "fleet.log")
        self.began_s = time.time()
        self.start()

    def follow(self, pattern: str) -> None:
        self.tell(f"pattern {pattern}")

    def summary(self) -> dict[str, Any]:
        return self.last_answer(SUMMARY_S_MAX)

    def stop(self, seconds_max: float = STOP_S_MAX) -> None:
        super().stop(seconds_max)
