"""The check as a thread beside other work: it must not wait for that, nor that for it."""

import threading
import time

from tidegate.model.errors import BrokerUnavailableError, DamagedDocumentError
from tidegate.pipeline.completeness.checker import Completeness

LOOK_S = 1.0
STOP_S_MAX = 10.0


class CompletenessThread(threading.Thread):
    """``problem`` is a sentence while the control bus keeps it from looking."""

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
            except (BrokerUnavailableError, DamagedDocumentError) as error:
                self.problem = str(error)
            self._stopping.wait(LOOK_S)
        self._completeness.stop(time.time())

    def stop(self) -> None:
        self._stopping.set()
        self.join(STOP_S_MAX)
