"""The colours of everything that people look at, for light and for dark paper: dashboard, plots and pages alike."""

COLOURS = {
    "ink": ("#1b2733", "#e6edf3"),
    "quiet": ("#5a6672", "#9aa7b4"),
    "paper": ("#ffffff", "#10171f"),
    "mist": ("#f4f6f8", "#182028"),
    "line": ("#d8dee4", "#2b3640"),
    "tide": ("#0b7285", "#3bc9db"),
    "good": ("#2b8a3e", "#69db7c"),
    "caution": ("#b35900", "#ffa94d"),
    "danger": ("#c92a2a", "#ff8787"),
    "past": ("#868e96", "#868e96"),
    # For categories: Okabe and Ito's, which people with any kind of colour vision tell apart.
    "class-1": ("#0072b2", "#56b4e9"),
    "class-2": ("#d55e00", "#e69f00"),
    "class-3": ("#009e73", "#009e73"),
    "class-4": ("#cc79a7", "#cc79a7"),
}


def light(name: str) -> str:
    return COLOURS[name][0]
