"""The tab about the pipeline, without a browser: sentence, numbers, coloured slices, tables' health, rows and bars."""

from typing import Any

import msgspec
import pytest

from tidegate.model.decisions import Mode
from tidegate.model.observations import NodeState, SliceState
from tidegate.model.progress import Batch
from tidegate.model.tables import MaintenanceRun, TableHealth, TablesState
from tidegate.model.view import ChainStates, View
from tidegate.web.components.bars import drawn_batches
from tidegate.web.components.cells import cell_html, cell_kind
from tidegate.web.components.stations import alarms_html, stations_html
from tidegate.web.components.table import Table
from tidegate.web.tabs.pipeline import charts, maintenance, slices, tables
from tidegate.web.tabs.pipeline.sentence import sentence, tiles
from tidegate.web.values.node_history import NodeMoment, NodeRecord
from tidegate.web.values.words import bytes_of

NOW_S = 1000.0


def node(name: str = "n1", **fields: Any) -> NodeState:
    values: dict[str, Any] = {"alive": True, "slices": (0, 1), "rows": 4000}
    return NodeState(name=name, **(values | fields))


def slice_(number: int = 0, **fields: Any) -> SliceState:
    values: dict[str, Any] = {"owner": "n1", "epoch": 4, "stored": 900, "waiting": 12, "age_s": 0.4}
    return SliceState(number=number, **(values | fields))


def record(*, at_limit: bool = False, per_s: float | None = 240.0, **fields: Any) -> NodeRecord:
    moment = NodeMoment(at_s=NOW_S, arriving_per_s=250.0, processed_per_s=per_s, capacity_per_s=300.0)
    batch = Batch(at_s=NOW_S - 1, rows=360, seconds=1.5, at_limit=at_limit)
    values: dict[str, Any] = {"moments": (moment,), "batches": (batch,), "refused_per_min": {}}
    return NodeRecord(**(values | fields))


def run(table: str = "readings", at_s: float = 820.0, **fields: Any) -> MaintenanceRun:
    return MaintenanceRun(table=table, at_s=at_s, seconds=4.2, **fields)


def said(at_s: float = 998.0, **fields: Any) -> TablesState:
    health = TableHealth(
        active_files=412, log_entries=930, bytes=7_300_000_000, rows=104_220_911, dates=91, oldest_date="2026-08-19"
    )
    values: dict[str, Any] = {"tables": {"readings": health}, "runs": (run(),), "next_s": 1130.0}
    return TablesState(maintainer="m1", at_s=at_s, **(values | fields))


def view(**chain: Any) -> View:
    return View(name="x", controller="c", leader="c", mode=Mode(), samples=(), decisions=(), chain=ChainStates(**chain))


# -- the sentence


def test_the_sentence_says_who_works_which_slice_is_behind_and_how_the_tables_are() -> None:
    lagging = slice_(3, waiting=1930, age_s=24.2, owner="n2")
    chain = ChainStates(nodes=(node(), node("n2")), slices=(slice_(), lagging, slice_(6, taker="n2")), tables=said())
    assert sentence(chain, {"n1": record(at_limit=True), "n2": record()}, NOW_S) == (
        "2 processing nodes take 480 msg/s, 500 arrive; n1 is at its limit. "
        "Slice 3 is furthest behind: 1,930 wait, its oldest reading waits for 24 s. "
        "Slice 6 is on the way to another node. The tables were maintained 3 min ago, next in 2 min."
    )


@pytest.mark.parametrize(
    ("chain", "words"),
    [
        (
            ChainStates(slices=tuple(SliceState(number=n, stored=0, waiting=0, age_s=0.0) for n in range(8))),
            "No processing node runs: readings wait in the brokers. All 8 slices are up to date. "
            "Nobody works on any slice. No maintainer has said anything yet: nobody looks after the tables.",
        ),
        (
            ChainStates(nodes=(node("new", ready=False),), slices=(slice_(), slice_(1)), tables=said(runs=())),
            "1 processing node runs, how much is processed is not known yet. All 2 slices are less than 2 s behind. "
            "No maintenance was done yet, next in 2 min.",
        ),
        (
            ChainStates(
                nodes=(node(alive=False),),
                slices=(slice_(waiting=None, age_s=None), slice_(1, waiting=None, age_s=None)),
                tables=said(at_s=810.0),
            ),
            "No processing node runs: readings wait in the brokers. How far the slices are is not known. "
            "No maintainer has said anything for 3 min: the tables are shown as they were then.",
        ),
        (
            ChainStates(nodes=(node(), node("n2", alive=False)), slices=(slice_(), slice_(1, waiting=None))),
            "1 processing node takes 240 msg/s, 250 arrive; n2 does not answer. "
            "1 of 2 slices are less than 2 s behind, of the others it is not known. "
            "No maintainer has said anything yet: nobody looks after the tables.",
        ),
    ],
    ids=["an empty installation", "a node that warms up", "all is broken", "half of it is"],
)
def test_the_sentence_of_other_days(chain: ChainStates, words: str) -> None:
    assert sentence(chain, {"n1": record()}, NOW_S) == words


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"running": "readings"}, "readings is being worked on"),
        ({"next_s": 0.0}, "when it comes next is not known"),
        ({"next_s": 990.0}, "the next time is now"),
        ({"next_s": 400.0}, "the next time is 10 min late"),
    ],
)
def test_when_the_next_maintenance_comes(fields: dict[str, Any], words: str) -> None:
    assert maintenance.next_words(said(**fields), NOW_S) == words


# -- numbers


def test_tiles_say_what_their_numbers_are_made_of() -> None:
    nodes = (node(rejects={"too old": 7}), node("n2"))
    chain = ChainStates(nodes=nodes, slices=(slice_(), slice_(3, waiting=1930, age_s=24.2)), tables=said())
    records = {"n1": record(refused_per_min={"too old": 3.0}), "n2": record()}
    found = {one.name: (one.value, one.detail) for one in tiles(chain, records, NOW_S)}
    assert found == {
        "Arriving": ("500 msg/s", "in the slices of the nodes"),
        "Processed": ("480 msg/s", "over the last five seconds"),
        "Capacity": ("600 msg/s", "as seen of 2 of 2 nodes"),
        "Furthest behind": ("24 s", "slice 3 on n1, 1,930 wait"),
        "Refused readings": ("3 per minute", "7 so far"),
        "Tables": ("412 files", "6.8 GiB in 1 table"),
    }


def test_a_capacity_that_no_batch_has_shown_yet_is_not_known() -> None:
    """Long batches show it as well as those that a limit cut."""
    moment = NodeMoment(at_s=NOW_S, arriving_per_s=1.0, processed_per_s=1.0, capacity_per_s=None)
    found = tiles(ChainStates(nodes=(node(),)), {"n1": record(moments=(moment,))}, NOW_S)
    (detail,) = (one.detail for one in found if one.name == "Capacity")
    assert detail == "no batch was long or cut by a limit yet"


def test_without_a_node_the_tiles_say_that_none_runs() -> None:
    found = {one.name: (one.value, one.detail) for one in tiles(ChainStates(), {}, NOW_S)}
    unknown = ("?", "no processing node runs")
    assert [found[name] for name in ("Arriving", "Processed", "Capacity")] == [unknown] * 3
    assert found["Refused readings"] == ("? per minute", "no processing node runs")


def test_what_is_not_known_is_no_zero() -> None:
    for chain in (ChainStates(), ChainStates(nodes=(node(alive=False),), slices=(slice_(waiting=None, age_s=None),))):
        values = {one.name: one.value for one in tiles(chain, {}, NOW_S)}
        assert values["Furthest behind"] == "?"
        assert all("0" not in value for value in values.values()), values
    assert slices.slice_table((SliceState(number=0),)).rows == (("0", "nobody", "stays", "0", "?", "?"),)


def test_a_node_whose_rate_is_not_known_makes_the_sum_unknown() -> None:
    chain = ChainStates(nodes=(node(), node("n2")))
    found = {one.name: one.value for one in tiles(chain, {"n1": record(), "n2": record(per_s=None)}, NOW_S)}
    assert found["Processed"] == "not known yet"


def test_the_tables_tile_says_what_is_wrong() -> None:
    old = said(at_s=810.0, runs=(run(problem="full"), run("means", problem="full"), run("means")))
    *_, tile = tiles(ChainStates(tables=old), {}, NOW_S)
    assert tile.alarms == ("as they were 3 min ago", "maintenance of readings failed")


# -- slices


@pytest.mark.parametrize(
    ("one", "severity", "value", "detail"),
    [
        (slice_(), "good", "0.4 s old", "n1"),
        (slice_(waiting=0, age_s=0.0), "good", "up to date", "n1"),
        (slice_(age_s=2.0), "caution", "2 s old", "n1"),
        (slice_(age_s=5.0), "danger", "5 s old", "n1"),
        (slice_(owner=None), "caution", "0.4 s old", "nobody's"),
        (slice_(owner="n9"), "caution", "0.4 s old", "n9, gone"),
        (slice_(waiting=None, age_s=None), "unknown", "not known", "n1"),
        (slice_(age_s=None), "unknown", "12 wait", "n1"),
        (slice_(taker="n2"), "good", "0.4 s old", "n1 → n2"),
    ],
    ids=["fresh", "empty", "caution", "danger", "free", "of a dead node", "not known", "age not known", "on its way"],
)
def test_a_slice_has_a_colour_a_sign_and_words(one: SliceState, severity: str, value: str, detail: str) -> None:
    (cell,) = slices.cells((one,), (node(),))
    assert (cell.severity, cell.value, cell.detail, cell.is_moving) == (severity, value, detail, one.taker is not None)
    assert cell_kind(cell) == f"cell-{severity}" + (" moving" if one.taker else "")
    assert cell_html(cell)[:100].count("●▲■?"[("good", "caution", "danger", "unknown").index(severity)]) == 1


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (slice_(), "Slice 0 is on n1 (epoch 4). 12 readings wait, the oldest for 0.4 s."),
        (slice_(waiting=1), "Slice 0 is on n1 (epoch 4). 1 reading waits, the oldest for 0.4 s."),
        (slice_(waiting=0), "Slice 0 is on n1 (epoch 4). The tables have all of it."),
        (slice_(age_s=None), "Slice 0 is on n1 (epoch 4). 12 readings wait, for how long is not known."),
        (
            slice_(owner="n9", taker="n2", waiting=None),
            "Slice 0 is on n9, which does not answer, on its way to n2 (epoch 4). How much of it waits is not known.",
        ),
        (slice_(owner=None, waiting=0), "Slice 0 is nobody's (epoch 4). The tables have all of it."),
    ],
)
def test_its_title_says_all_that_is_known(one: SliceState, words: str) -> None:
    assert slices.title(one, {"n1"}) == words


# -- tables and maintenance


def test_the_tables_health_is_told_as_it_was_seen() -> None:
    assert maintenance.health(said()).rows == (
        ("readings", "104,220,911", "6.8 GiB", "412", "930", "91", "2026-08-19"),
    )
    assert maintenance.health(None).empty == maintenance.NEVER
    assert maintenance.health(said(tables={})).empty == "The maintainer has not looked at a table yet."


@pytest.mark.parametrize(
    ("done", "words"),
    [
        (run(), "nothing was to be done"),
        (run(files_merged=1204, files_written=16), "merged 1,204 files into 16"),
        (
            run(files_removed=9, log_entries_removed=3400, dates_dropped=1),
            "removed 9 old files, removed 3,400 log entries, dropped 1 day",
        ),
        (run(problem="The disk is full."), "■ The disk is full."),
        (run(files_removed=9, problem="The disk is full."), "■ The disk is full. (removed 9 old files)"),
    ],
)
def test_what_a_round_did_is_told_in_words(done: MaintenanceRun, words: str) -> None:
    assert maintenance.run_words(done) == words


def test_the_newest_rounds_stand_first_and_old_ones_are_left_out() -> None:
    many = said(runs=tuple(run(f"t{number}", 100.0 * number) for number in range(10)))
    rows = maintenance.runs(many, NOW_S).rows
    assert rows[0] == ("100 s ago", "t9", "nothing was to be done", "4.2 s")
    assert [row[1] for row in rows] == [f"t{number}" for number in range(9, 1, -1)]


def test_alarms_of_a_maintainer_that_is_silent_are_told_with_their_age() -> None:
    wrong = {"alarms": ("readings has many files.",), "runs": (run(problem="The disk is full."),)}
    failed = "Maintenance of readings failed: The disk is full."
    assert maintenance.alarms(said(**wrong), NOW_S) == ("readings has many files.", failed)
    assert maintenance.alarms(said(at_s=800.0, **wrong), NOW_S) == (
        "readings has many files. (said 3 min ago)",
        f"{failed} (said 3 min ago)",
    )
    assert maintenance.alarms(None, NOW_S) == ()
    both = said(alarms=("The disk is full.",), runs=wrong["runs"])
    assert maintenance.alarms(both, NOW_S) == ("The disk is full.",), "nothing is told twice"


def test_of_rounds_without_work_only_the_last_of_each_table_is_shown() -> None:
    rounds = (
        run(at_s=700.0),
        run(at_s=760.0, files_removed=9),
        run("means", 780.0),
        run(at_s=820.0),
        run("means", 840.0),
    )
    rows = maintenance.runs(said(runs=rounds), NOW_S).rows
    assert [row[1:3] for row in rows] == [
        ("means", "nothing was to be done"),
        ("readings", "nothing was to be done"),
        ("readings", "removed 9 old files"),
    ]


# -- nodes and what they refused


def test_a_node_says_what_it_does_and_what_it_can_do() -> None:
    shown = (
        node(),
        node("n2", alive=False, problem="full", limit_rows=1500.0, limit_s=3.0),
        node("n3", ready=False, slices=()),
    )
    rows = tables.nodes(view(nodes=shown), {"n1": record()}).rows
    assert rows[0] == ("n1", "● alive", "0, 1", "250", "240", "300 msg/s", "4,000", "none")
    assert rows[1][1:6] == ("■ does not answer", "0, 1", "?", "?", "500 msg/s")
    assert rows[2][1:6] == ("▲ warms up", "none", "?", "?", "not seen yet")


def test_refused_readings_are_summed_over_nodes_most_first() -> None:
    shown = (
        node(rejects={"too old": 2, "not JSON": 5}, rejected_devices=(("d1", "not JSON", 4), ("d2", "too old", 2))),
        node("n2", rejects={"too old": 9}, rejected_devices=(("d1", "not JSON", 3), ("", "not JSON", 1))),
    )
    records = {"n1": record(refused_per_min={"too old": 1.0, "not JSON": 2.0}), "n2": record(refused_per_min={})}
    assert tables.refused_reasons(shown, records).rows == (("too old", "11", "1"), ("not JSON", "5", "2"))
    assert tables.refused_devices(shown).rows == (
        ("d1", "not JSON", "7"),
        ("d2", "too old", "2"),
        ("not said", "not JSON", "1"),
    )
    assert tables.refused_reasons(shown, {"n1": record()}).rows[0][2] == "?", "n2's share is not known yet"


def test_what_is_empty_says_what_that_means() -> None:
    quiet, nobody = (node(),), ()
    assert tables.refused_reasons(quiet, {}).empty == "No reading was refused."
    assert tables.refused_devices(nobody).empty == tables.refused_reasons(nobody, {}).empty == tables.NOBODY_SAYS
    assert "'tidegate node'" in tables.nodes(view(), {}).empty
    assert charts.caption({}) == charts.NO_NODE


def test_raw_values_leave_out_what_nobody_said() -> None:
    assert tables.raw_values(view(), NOW_S).rows == ()
    batch = Batch(at_s=NOW_S - 3, rows=360, seconds=1.5)
    rows = dict(tables.raw_values(view(nodes=(node(batches=(batch,)),), tables=said(next_s=880.0)), NOW_S).rows)
    assert rows["Last batch"] == "360 rows in 1.5 s, 3 s ago"
    assert rows["It spoke"] == "2 s ago"
    assert rows["Next maintenance"] == "was due 2 min ago"


def test_names_from_elsewhere_cannot_carry_markup() -> None:
    nasty = "<script>x</script>"
    bad = node(nasty, rejects={nasty: 1}, rejected_devices=((nasty, nasty, 1),), problem=nasty)
    broken = said(tables={nasty: said().tables["readings"]}, runs=(run(nasty, problem=nasty),), alarms=(nasty,))
    chain = {"nodes": (bad,), "slices": (slice_(owner=nasty, taker=nasty),), "tables": broken}
    pages: list[Table] = [
        tables.nodes(view(**chain), {}),
        tables.refused_reasons((bad,), {}),
        tables.refused_devices((bad,)),
        tables.raw_values(view(**chain), NOW_S),
        maintenance.health(broken),
        maintenance.runs(broken, NOW_S),
        slices.slice_table(chain["slices"]),
    ]
    (cell,) = slices.cells(chain["slices"], ())
    parts = [page.html() for page in pages]
    parts += [cell_html(cell), alarms_html(maintenance.alarms(broken, NOW_S))]
    parts += [stations_html(tiles(ChainStates(**chain), {}, NOW_S), "tiles")]
    assert all("<script>" not in part for part in parts)


# -- the picture


def test_each_node_has_its_batches_and_below_them_its_rates_with_the_capacity_dashed() -> None:
    options = charts.pipeline({"n1": record(at_limit=True), "n2": record()})
    assert [one["text"] for one in options["title"]] == [
        "n1: rows per batch (1 of 1 at the limit)",
        "n1: messages per second",
        "n2: rows per batch (none at the limit)",
        "n2: messages per second",
    ]
    series = {(one["xAxisIndex"], one["name"]): one for one in options["series"]}
    assert set(series) == {
        *((panel, name) for panel in (1, 3) for name in ("capacity", "arriving", "processed")),
        (0, "batch"),
        (2, "batch"),
    }
    assert series[0, "batch"]["data"] == [[999_000.0, 360, 997_500, 1]]
    assert series[1, "capacity"]["lineStyle"]["type"] == "dashed"
    assert len({one["id"] for one in options["series"]}) == len(options["series"])


def test_a_node_that_was_never_at_its_limit_has_no_line_and_says_so() -> None:
    moment = NodeMoment(at_s=NOW_S, arriving_per_s=1.0, processed_per_s=1.0, capacity_per_s=None)
    options = charts.pipeline({"n1": record(moments=(moment,), batches=())})
    assert [one["text"] for one in options["title"]] == [
        "n1: rows per batch (none in two minutes)",
        "n1: messages per second (capacity not seen yet)",
    ]
    assert {one["name"] for one in options["series"]} == {"arriving", "processed", "batch"}


def test_of_many_nodes_the_four_that_did_most_are_drawn_and_the_chart_grows_no_further() -> None:
    many = {f"n{number}": record(batches=(Batch(at_s=NOW_S, rows=100 * number, seconds=1.0),)) for number in range(6)}
    assert [one["text"].partition(":")[0] for one in charts.pipeline(many)["title"][::2]] == ["n2", "n3", "n4", "n5"]
    assert charts.caption(many).endswith("The 4 busiest of 6 nodes are drawn.")
    heights = [charts.chart_px(dict(list(many.items())[:count])) for count in range(7)]
    assert heights == sorted(heights)
    assert heights[4] == heights[6]


def test_before_anything_is_known_there_is_an_empty_chart() -> None:
    assert charts.pipeline({})["series"] == []


def test_of_batches_in_the_same_half_second_the_one_at_the_limit_or_the_largest_is_drawn() -> None:
    small, large = Batch(at_s=10.1, rows=5, seconds=0.1), Batch(at_s=10.2, rows=9, seconds=0.1)
    limited, later = Batch(at_s=10.3, rows=7, seconds=0.1, at_limit=True), Batch(at_s=10.5, rows=1, seconds=0.1)
    assert drawn_batches((small, large, later)) == (large, later)
    assert drawn_batches((small, large, limited, later)) == (limited, later)


@pytest.mark.parametrize(
    ("size", "words"), [(0, "0 bytes"), (1023, "1023 bytes"), (1536, "1.5 KiB"), (7_300_000_000, "6.8 GiB")]
)
def test_bytes_are_written_for_people(size: int, words: str) -> None:
    assert bytes_of(size) == words


def test_a_view_with_a_pipeline_is_written_as_json() -> None:
    shown = view(nodes=(node(batches=record().batches),), slices=(slice_(),), tables=said())
    assert msgspec.json.decode(msgspec.json.encode(shown), type=View) == shown
