"""Numbers, modes and phases as people read them: one vocabulary for the whole dashboard."""

from tidegate.model.decisions import Mode

UNKNOWN = "?"
NOTHING_MEASURED = "Nothing is measured yet."
SEVERITY_WORDS = {"good": "● Good", "caution": "▲ Caution", "danger": "■ Danger"}
MODE_SENTENCES = {
    "acting": "Decisions are carried out.",
    "cohort": "Decisions are carried out for a share of the devices.",
    "shadow": "Decisions are made and written down, nobody is told.",
    "off": "No decisions about send rates are made.",
    "frozen": "All acting is stopped until it is released.",
}
PHASE_WORDS = {
    "idle": "not held",
    "protect": "held",
    "recover": "recovering",
    "hold": "held",
    "drain": "draining",
    "probe": "probing",
    "overload": "overloaded",
}
_UNHELD = ("idle", "no evidence", "off", "overload", "")


def number(value: float | None) -> str:
    """Whole numbers with thousands separated; below ten two digits that count."""
    if value is None:
        return UNKNOWN
    return f"{value:,.0f}" if value >= 10 or value == int(value) else f"{value:.2g}"


def rate(value: float | None) -> str:
    return "not known yet" if value is None else f"{number(value)} msg/s"


def bytes_of(size: int) -> str:
    """In the largest unit of which there is one."""
    for place, unit in enumerate(("TiB", "GiB", "MiB", "KiB")):
        if size >= (one := 1024 ** (4 - place)):
            return f"{number(size / one)} {unit}"
    return f"{size} bytes"


def shortened(name: str, letters_max: int) -> str:
    """Names are chosen elsewhere and may be very long."""
    return name if len(name) <= letters_max else name[: letters_max - 1] + "…"


def phase_word(phase: str) -> str:
    return PHASE_WORDS.get(phase, phase)


def is_held(phase: str) -> bool:
    return phase not in _UNHELD


def held_word(phase: str) -> str:
    """Coarser than the phase: policies that hold devices may change it every few seconds."""
    if phase == "recover":
        return phase_word(phase)
    return "held" if is_held(phase) else "not held"


def mode_word(mode: Mode) -> str:
    return "frozen" if mode.frozen else mode.send_rate


def is_shadow(mode: Mode) -> bool:
    return mode_word(mode) == "shadow"


def shown_phase(mode: Mode, phase: str) -> str:
    """The phase's word; in shadow mode nobody is held, whatever the policy has decided."""
    return f"would be {phase_word(phase)}" if is_shadow(mode) and is_held(phase) else phase_word(phase)
