"""Stations: a name, the one number that matters, what it is made of, and alarms; in a row or as tiles."""

from collections.abc import Sequence
from html import escape

import msgspec


class Station(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    value: str
    detail: str
    alarms: tuple[str, ...] = ()


def stations_html(shown: Sequence[Station], kind: str = "chain") -> str:
    """``kind`` is the style sheet's name for how they are laid out."""
    return f"<ol class='{kind}'>{''.join(map(_station_html, shown))}</ol>"


def alarms_html(alarms: Sequence[str]) -> str:
    return "".join(f"<p class='alarm'>{escape(alarm)}</p>" for alarm in alarms)


def _station_html(station: Station) -> str:
    parts = (("name", station.name), ("value", station.value), ("detail", station.detail))
    lines = [*parts, *(("alarm", alarm) for alarm in station.alarms)]
    return "<li>" + "".join(f"<div class='{kind}'>{escape(text)}</div>" for kind, text in lines) + "</li>"
