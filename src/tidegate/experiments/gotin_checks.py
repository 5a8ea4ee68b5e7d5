"""The claims about ``adaptive`` that hold at every overload share."""

import statistics

from tidegate.experiments.gotin_runs import ADAPTIVE
from tidegate.experiments.mean_intervals import grouped
from tidegate.experiments.running import ReportRow
from tidegate.experiments.tuning import ORACLE
from tidegate.report.checks import Check

PROCESSED_MIN = 0.97
DELAY_S_MAX, DELAY_MAX_S_MAX = 0.5, 3.0


def adaptive_checks(rows: list[ReportRow]) -> list[Check]:
    """Processed messages over the oracle's, mean queueing delay, and the longest delay of any message on any seed."""
    found = []
    for share, own in grouped(rows, lambda row: row["share_percent"]).items():
        ours = [row for row in own if row["strategy"] == ADAPTIVE]
        processed = {
            name: statistics.fmean(row["processed"] for row in own if row["strategy"] == name)
            for name in (ADAPTIVE, ORACLE)
        }
        delay_s = statistics.fmean(row["delay_all_mean_s"] for row in ours)
        found += [
            Check.at_least(
                f"adaptive_vs_oracle[{share}]", round(processed[ADAPTIVE] / processed[ORACLE], 4), PROCESSED_MIN
            ),
            Check.at_most(f"adaptive_delay_s[{share}]", round(delay_s, 3), DELAY_S_MAX),
            Check.at_most(
                f"adaptive_delay_max_s[{share}]", round(max(row["delay_max_s"] for row in ours), 3), DELAY_MAX_S_MAX
            ),
        ]
    return found
