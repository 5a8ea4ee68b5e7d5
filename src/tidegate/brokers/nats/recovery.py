"""When a server that ended is started again, and what is said of one that is not well. No clock, no process."""

DELAY_S_MIN, DELAY_S_MAX = 0.5, 30.0
# A server that ran for this long had its chance: when it ends, it begins with the shortest delay again.
STEADY_S = 60.0
# Healthy for this long, it is well again. Before that an end at once would end the alarm every time.
WELL_S = 3.0
# A busy machine may keep a server from answering for some seconds.
DEAF_S = 10.0


class Recovery:
    """One server. Tell it what was seen, once a second or so, with a time that never goes back."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._delay_s = 0.0
        self._starts = 0
        self._start_at_s: float | None = None  # while it is down
        self._up_since_s = 0.0
        self._well_since_s: float | None = None
        self._unwell_since_s: float | None = None
        self._last_words = ""
        self._alarm: str | None = None

    @property
    def alarm(self) -> str | None:
        """A sentence that stays the same while nothing happens."""
        return self._alarm

    def down(self, now_s: float, last_words: str) -> bool:
        """It does not run; whether it is to be started now."""
        if self._start_at_s is None:
            if now_s - self._up_since_s >= STEADY_S:
                self._delay_s, self._starts = 0.0, 0
            self._delay_s = min(max(DELAY_S_MIN, 2 * self._delay_s), DELAY_S_MAX)
            self._start_at_s = now_s + self._delay_s
            self._well_since_s = self._unwell_since_s = None
            self._last_words = last_words
            self._say_down()
        return now_s >= self._start_at_s

    def started(self, now_s: float) -> None:
        self._start_at_s, self._up_since_s = None, now_s
        self._starts += 1
        self._say_down()

    def not_started(self, now_s: float, why: str) -> None:
        """It could not even be started: that is an end at once."""
        self.started(now_s)
        self.down(now_s, why)

    def up(self, now_s: float, problem: str | None) -> None:
        """It runs; ``problem`` is what its health page says, None where all is well."""
        if problem is None:
            self._unwell_since_s = None
            self._well_since_s = now_s if self._well_since_s is None else self._well_since_s
            if now_s - self._well_since_s >= WELL_S:
                self._alarm = None
            return
        self._well_since_s = None
        self._unwell_since_s = now_s if self._unwell_since_s is None else self._unwell_since_s
        if now_s - self._unwell_since_s >= DEAF_S:
            self._alarm = f"The server {self._name} runs, but {problem}"

    def _say_down(self) -> None:
        again = "it is started again" if not self._starts else f"it was started again, {self._starts} time(s) so far"
        self._alarm = f"The server {self._name} has ended, and {again}: {self._last_words}"
