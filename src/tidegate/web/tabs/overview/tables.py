"""The values behind the first screen in rows, pure."""

from tidegate.model.view import View, seconds
from tidegate.web.components.table import Table, value_table
from tidegate.web.values.ages import view_age_s
from tidegate.web.values.asked import asked_of
from tidegate.web.values.words import UNKNOWN, number, rate, shown_phase


def raw_values(view: View, now_s: float) -> Table:
    now, asked = view.now, asked_of(view)
    if now is None:
        return value_table()
    return value_table(
        ("Age of data", seconds(now.age_s)),
        ("Backlog", f"{number(now.waiting)} msg"),
        *((("Demand", rate(now.demand_per_s)),) if now.demand_per_s is not None else ()),
        ("Arriving", rate(now.arrival_per_s)),
        ("Processed", rate(now.departure_per_s)),
        ("Capacity", rate(now.capacity_per_s)),
        ("Advised interval" if asked.is_told else "Would be advised", asked.of("")),
        ("Phase", shown_phase(view.mode, now.phase) or UNKNOWN),
        ("Devices", number(now.devices)),
        ("Leading controller", view.leader or "none"),
        ("Age of these values", seconds(view_age_s(view, now_s) or 0.0)),
    )
