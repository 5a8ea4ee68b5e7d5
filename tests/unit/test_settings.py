"""Settings: defaults, file, environment; and sentences about what is wrong."""

import json
import tomllib
from pathlib import Path

import msgspec
import pytest

from tidegate.model.errors import UserError
from tidegate.settings.tree import Settings, load, with_options

DOCS = Path(__file__).parents[2] / "docs"


def file(directory: Path, text: str) -> Path:
    path = directory / "tidegate.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_no_file_means_the_defaults() -> None:
    assert load(None, {}) == Settings()


def test_file_then_environment(tmp_path: Path) -> None:
    path = file(tmp_path, '[broker]\nnodes = 3\nslices = 16\n[node]\nname = "east"\n')
    settings = load(path, {"TIDEGATE_BROKER__NODES": "2", "TIDEGATE_STATE": "elsewhere", "HOME": "/"})
    assert (settings.broker.nodes, settings.broker.slices, settings.node.name) == (2, 16, "east")


def test_lists_and_texts_that_look_like_numbers_come_from_the_environment() -> None:
    settings = load(None, {"TIDEGATE_BROKER__MQTT_PORTS": "[1883]", "TIDEGATE_NODE__NAME": "7"})
    assert settings.broker.mqtt_ports == (1883,)
    assert settings.node.name == "7"


def test_tables_in_a_list_come_from_the_environment_too() -> None:
    said = '[{name = "edge", speaks_for = ["pump-*"]}]'
    (edge,) = load(None, {"TIDEGATE_IDENTITY__APPLICATIONS": said}).identity.applications
    assert (edge.name, edge.speaks_for) == ("edge", ("pump-*",))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[broker]\nnode = 3", "unknown setting [broker] node: did you mean nodes?"),
        ("[broker]\nxyz = 3", "unknown setting [broker] xyz: choose one of nodes, slices,"),
        ("[brokr]\nnodes = 3", "unknown section [brokr]: did you mean broker?"),
        ("broker = 3", "broker is 3: expected a section [broker]."),
        ("[broker]\nnodes = 'three'", "[broker] nodes is 'three': expected an integer from 1 to 3."),
        ("[broker]\nnodes = 9", "[broker] nodes is 9: expected an integer from 1 to 3."),
        ("[broker]\ndurability = 'no'", "durability is 'no': expected one of 'power-loss', 'process-kill'."),
        ("[broker]\nmqtt_ports = ['x']", "mqtt_ports is ['x']: expected a list, each item an integer from 0"),
        ("[broker]\nnodes = 2\nmqtt_ports = [1]", "mqtt_ports names 1 ports for 2 nodes"),
        ("[node]\nlease_s = nan", "[node] lease_s is nan: expected a number from 0.5 to 600."),
        ("[node]\nname = 'a b'", "[node] name is 'a b': expected text that matches"),
        ("[node\n", "is not TOML (expected ']' at the end of a table declaration (at line 1, column 6))"),
    ],
)
def test_a_mistake_in_the_file_is_one_sentence_with_its_place(tmp_path: Path, text: str, sentence: str) -> None:
    path = file(tmp_path, text)
    with pytest.raises(UserError) as caught:
        load(path, {})
    message = str(caught.value)
    assert message.startswith(str(path))
    assert sentence in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("TIDEGATE_BROKER__NODES", "x", "the value is 'x': expected an integer from 1 to 3."),
        ("TIDEGATE_BROKER__NODES", "30", "the value is 30: expected an integer from 1 to 3."),
        ("TIDEGATE_BROKER__NODE", "3", "unknown setting [broker] node: did you mean nodes?"),
        ("TIDEGATE_BROKE__NODES", "3", "unknown section [broke]: did you mean broker?"),
        ("TIDEGATE_NODE__NAME__X", "3", "[node] name is a setting, not a section."),
        (
            "TIDEGATE_IDENTITY__APPLICATIONS",
            '[{nam = "edge"}]',
            "unknown setting [identity.applications[0]] nam: did you mean name?",
        ),
    ],
)
def test_a_mistake_in_the_environment_names_the_variable(name: str, value: str, sentence: str) -> None:
    with pytest.raises(UserError) as caught:
        load(None, {name: value})
    assert str(caught.value) == f"Environment variable {name}: {sentence}"


def test_options_are_put_over_a_section_and_checked_like_the_file() -> None:
    node = with_options(Settings().node, {"name": "west", "lease_s": None})
    assert (node.name, node.lease_s) == ("west", Settings().node.lease_s)
    with pytest.raises(UserError, match=r"Option --lease-s is 0\.1: expected a number from 0\.5 to 600"):
        with_options(node, {"lease_s": 0.1})


def test_durable_is_what_survives_a_power_failure() -> None:
    assert not Settings().durable
    assert load(None, {"TIDEGATE_BROKER__DURABILITY": "power-loss"}).durable


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="does not exist"):
        load(tmp_path / "none.toml", {})
    with pytest.raises(UserError, match="cannot be read"):
        load(tmp_path, {})
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(UserError, match="not UTF-8"):
        load(tmp_path / "binary.toml", {})


@pytest.mark.parametrize(
    ("page", "parts"),
    [("data-path.md", ("broker", "node")), ("tables.md", ("maintenance",)), ("identity.md", ("identity",))],
)
def test_the_documented_settings_are_all_there_are_with_their_defaults(page: str, parts: tuple[str, ...]) -> None:
    section = (DOCS / page).read_text(encoding="utf-8").partition("\n## Settings\n")[2].partition("\n## ")[0]
    said = tomllib.loads("\n".join(line.strip() for line in section.splitlines() if line.startswith("    ")))
    defaults = json.loads(msgspec.json.encode(Settings()))
    assert said == {part: defaults[part] for part in parts}
