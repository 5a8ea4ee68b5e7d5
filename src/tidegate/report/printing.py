"""A report on standard output: tables for people, or one JSON object for programs."""

import sys
from typing import TextIO

from tidegate.report.checks import Report
from tidegate.report.json_form import to_json
from tidegate.report.tables import checks_table, console_on, rows_table


def print_report(report: Report, *, as_json: bool, stream: TextIO | None = None) -> None:
    stream = stream or sys.stdout
    if as_json:
        stream.write(to_json(report) + "\n")
        stream.flush()
        return
    console = console_on(stream)
    failed = [check.name for check in report.checks if not check.holds]
    verdict = f"{len(failed)} of {len(report.checks)} checks fail: {', '.join(failed)}" if failed else "all checks hold"
    console.print(f"{report.name}: {verdict}, {report.seconds:.3g} s.", markup=False, highlight=False)
    if report.rows:
        console.print(rows_table(report.rows))
    if report.checks:
        console.print(checks_table(report.checks))
