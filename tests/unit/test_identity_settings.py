"""The section [identity]: its defaults, and what is wrong with others."""

from pathlib import Path

import msgspec
import pytest

from tidegate.gateway.identity.settings import IdentitySettings
from tidegate.model.errors import UserError
from tidegate.model.identity import Access, Application, Patterns
from tidegate.settings.tree import Settings, load


def loaded(directory: Path, text: str) -> IdentitySettings:
    path = directory / "tidegate.toml"
    path.write_text(text, encoding="utf-8")
    return load(path, {}).identity


def test_devices_have_derived_passwords_and_their_own_topics_unless_told_otherwise() -> None:
    identity = Settings().identity
    assert identity.methods == ("derived",)
    assert identity.access == Access()
    assert Access().devices.publishes == ("telemetry/{device}", "telemetry/{device}/#")


def test_a_whole_section_is_read(tmp_path: Path) -> None:
    identity = loaded(
        tmp_path,
        """
        [identity]
        methods = ["file", "jwt"]
        [identity.file]
        path = "passwords"
        [identity.jwt]
        secret = "jwt.secret"
        algorithms = ["HS256"]
        [identity.devices]
        publishes = ["d/{device}/up"]
        [[identity.applications]]
        name = "bridge"
        speaks_for = ["pump-*"]
        methods = ["certificate"]
        """,
    )
    bridge = Application(name="bridge", speaks_for=("pump-*",), methods=("certificate",))
    assert identity.access == Access(devices=Patterns(publishes=("d/{device}/up",)), applications=(bridge,))
    assert (identity.file.path, identity.jwt.name_claim) == ("passwords", "sub")


def test_the_environment_reaches_every_method() -> None:
    environment = {"TIDEGATE_IDENTITY__METHODS": '["http"]', "TIDEGATE_IDENTITY__HTTP__URL": "http://127.0.0.1:1/"}
    assert load(None, environment).identity.http.url == "http://127.0.0.1:1/"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("methods = []", "[identity] methods is []: expected a list, each item one of"),
        ("methods = ['derived', 'derived']", "methods names one twice: name each once."),
        ("methods = ['ldap']", "expected a list, each item one of 'broker', 'cert"),
        ("methods = ['file']", "[identity.file] path is empty: name the file"),
        ("methods = ['http']", "[identity.http] url is '': name the service, like https://"),
        ("methods = ['http']\nhttp.url = 'ftp://x'", "[identity.http] url is 'ftp://x': name the service"),
        ("methods = ['jwt']", "[identity.jwt] keys and secret are empty: name a file"),
        ("methods = ['jwt']\njwt.secret = 's'", "algorithms and secret do not fit together: add HS256"),
        ("methods = ['jwt']\njwt.keys = ['k']\njwt.algorithms = ['HS256']", "name its file as secret, or leave HS256"),
        ("methods = ['jwt']\njwt.keys = ['k']\njwt.algorithms = []", "algorithms is empty: name at least one"),
        (
            "methods = ['jwt']\njwt.keys = ['k']\njwt.secret = 's'\njwt.algorithms = ['HS256']",
            "algorithms and keys do not fit together: add an algorithm like RS256.",
        ),
        ("methods = ['jwt']\njwt.keys = ['k']\njwt.algorithms = ['none']", "expected a list, each item one of 'ES256'"),
        ("devices.publishes = ['a/#/b']", "'a/#/b' in publishes of devices cannot be used: let # be its last level."),
        ("devices.publishes = ['a/b+']", "cannot be used: let + and # be whole levels."),
        ("devices.publishes = ['a/x-{device}']", "cannot be used: let {device} be a whole level."),
        ("devices.publishes = ['']", "cannot be used: give it 1 to 4,096 bytes without NUL."),
        ("devices.subscribes = ['$SYS/#']", "topics that begin with $ are the broker's own, leave it out."),
        ("devices.subscribes = ['tidegate/advice']", "the gateway itself gives advice to every client"),
        ("applications = [{name = 'a/b'}]", "Device name 'a/b' cannot be a topic level"),
        ("applications = [{name = 'a', subscribes = ['#/a']}]", "'#/a' in subscribes of application a cannot be used"),
        ("applications = [{name = 'a'}, {name = 'a'}]", "Two applications are called a: rename one of them"),
        ("applications = [{name = 'a', speaks_for = ['x/*']}]", "In speaks_for of application a: Device name 'x/'"),
        ("applications = [{name = 'a', methods = []}]", "methods is []: expected a list"),
    ],
)
def test_a_mistake_is_one_sentence_with_its_place(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(UserError) as caught:
        loaded(tmp_path, f"[identity]\n{text}\n")
    message = str(caught.value)
    assert message.startswith(str(tmp_path))
    assert sentence in message
    assert "\n" not in message


def test_what_stands_on_the_bus_is_checked_like_a_file() -> None:
    with pytest.raises(UserError, match="let # be its last level"):
        msgspec.json.decode(b'{"devices": {"publishes": ["#/a"]}}', type=Access)
