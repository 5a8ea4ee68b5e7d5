"""The check as a thread beside other work: it must not wait for that, nor that for it."""

import threading
import time

from tidegate.pipeline.completeness.checker import STEP_S, Completeness

LOOK_S = 1.0
STOP_S_MAX = 10.0


class CompletenessThread(threading.Thread):
    """``problem`` is a sentence while something keeps it from looking, the control bus for example."""

    def __init__(self, completeness: Completeness) -> None:
        super().__init__(name="completeness", daemon=True)
        self.problem: str | None = None
        self._completeness = completeness
        self._stopping = threading.Event()

    def run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._completeness.step(time.time())
                self.problem = None
            except Exception as error:  # nobody else would do it if this thread ended
                why = " ".join(str(error).split()) or type(error).__name__
                self.problem = f"What gateways acknowledged cannot be compared with the tables: {why}"
            # A step that is not due says nothing about whether the problem lasts.
            self._stopping.wait(LOOK_S if self.problem is None else STEP_S + LOOK_S)
        self._completeness.stop(time.time())

    def stop(self) -> None:
        self._stopping.set()
        self.join(STOP_S_MAX)
