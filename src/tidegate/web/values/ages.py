"""How far back the dashboard looks, and from when on what it shows is too old."""

from tidegate.model.view import View

SPAN_S = 120.0  # of every chart
# Older than this, values are called stale: several measurements in a row are missing.
STALE_S = 5.0


def view_age_s(view: View, now_s: float) -> float | None:
    """How old the newest measurement is; None where there is none yet."""
    return max(0.0, now_s - view.now.at_s) if view.now else None
