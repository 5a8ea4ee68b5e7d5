"""Colours of plots and pages, for light and for dark paper."""

COLOURS = {
    "ink": ("#1b2733", "#e6edf3"),
    "quiet": ("#5a6672", "#9aa7b4"),
    "paper": ("#ffffff", "#10171f"),
    "mist": ("#f4f6f8", "#182028"),
    "line": ("#d8dee4", "#2b3640"),
    "tide": ("#0b7285", "#3bc9db"),
    "caution": ("#b35900", "#ffa94d"),
    "past": ("#868e96", "#868e96"),
}


def light(name: str) -> str:
    return COLOURS[name][0]
