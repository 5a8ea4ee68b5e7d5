"""Whether the tables have all that was acknowledged, as a line below the chain, pure."""

from html import escape

from tidegate.model.ledger_words import summary_of
from tidegate.model.view import View
from tidegate.web.values.words import SEVERITY_WORDS


def completeness_html(view: View, now_s: float) -> str:
    """Empty where nobody checks: brokers without a log have nothing to compare."""
    if view.completeness is None:
        return ""
    summary = summary_of(view.completeness, now_s)
    word = escape(SEVERITY_WORDS.get(summary.severity, summary.severity))
    return (
        f"<p class='completeness'><span class='severity {escape(summary.severity)}'>{word}</span>"
        f"<span class='sentence'>{escape(summary.sentence)}</span></p>"
    )
