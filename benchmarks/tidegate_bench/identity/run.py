"""``tidegate bench identity``: the matrix of who gets in, what knowing that costs, and how fast somebody is out."""

import time
from pathlib import Path

from tidegate.report.checks import Report
from tidegate.report.progress import Progress
from tidegate_bench.identity.cells import cells
from tidegate_bench.identity.costs import cost_checks, cost_rows
from tidegate_bench.identity.dead_service import service_rows
from tidegate_bench.identity.grounds import grounds
from tidegate_bench.identity.judging import matrix_checks
from tidegate_bench.identity.matrix import matrix_rows
from tidegate_bench.identity.revoking import revoking_checks, revoking_rows
from tidegate_bench.rig.processes import allow_open_files


def run(progress: Progress, out: Path | None) -> Report:
    began_s = time.monotonic()
    allow_open_files()
    progress.step("Starting the brokers.")
    with grounds(out) as stage:
        matrix = matrix_rows(stage, cells(), progress.update)
        service = service_rows(stage, progress.step)
        costs = cost_rows(stage, progress.step)
        revoking = revoking_rows(stage, progress.step)
    checks = [*matrix_checks(matrix), *cost_checks(costs), *revoking_checks(revoking)]
    rows = [*matrix, *service, *costs, *revoking]
    return Report("bench identity", rows, checks, round(time.monotonic() - began_s, 1))
