"""The method ``file``: Mosquitto's own password files, read, checked beside the event loop, and read again."""

import asyncio
import os
import shutil
import subprocess
import threading
from pathlib import Path

import pytest

from tidegate.gateway.identity import passwords, verdicts
from tidegate.gateway.identity.files import EMPTIED_LOOKS, SETTLED_LOOKS
from tidegate.gateway.identity.hashing import Hashed, hashed, is_hash, parsed
from tidegate.gateway.identity.judging import Accepted, Identities, Looked, Presented, Refused
from tidegate.gateway.identity.settings import FileSettings, IdentitySettings
from tidegate.model.credentials import Key, Keys, password_of
from tidegate.model.errors import UserError
from tidegate.model.identity import Access, Application, MethodName

NOW_S = 1_000.0
KEY = Key(id="k1", secret=bytes(32))


def line(name: str, password: str) -> str:
    return f"{name}:{hashed(password.encode()).text()}\n"


def identities(path: Path, *behind: MethodName, strict: bool = True) -> Identities:
    settings = IdentitySettings(methods=("derived", "file", *behind), file=FileSettings(path=str(path)))
    return Identities(settings, Access(applications=(Application(name="analytics"),)), lambda: NOW_S, strict=strict)


def shown(user: str, password: str | None) -> Presented:
    return Presented(user=user.encode(), password=None if password is None else password.encode())


def slowly(judges: Identities, presented: Presented) -> Accepted | Refused:
    return asyncio.run(judges.judge_slowly(presented))


def look(judges: Identities) -> Looked:
    """Twice: a file that has changed counts when it stays as it is."""
    assert look_once(judges) == Looked()
    return look_once(judges)


def look_once(judges: Identities) -> Looked:
    return judges.look(NOW_S, lambda _: True)


def write(path: Path, text: str) -> None:
    """As a new file, and by its time another one than before."""
    path.write_text(text)
    found = path.stat()
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns + 1))


# -- hashes


@pytest.mark.skipif(shutil.which("mosquitto_passwd") is None, reason="left out: mosquitto_passwd is not installed")
@pytest.mark.parametrize("kind", ["sha512-pbkdf2", "sha512"])
def test_a_file_of_mosquittos_own_is_taken_as_it_is(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "passwords"
    subprocess.run(["mosquitto_passwd", "-H", kind, "-c", "-b", path, "pump-1", "sécret"], check=True)
    judges = identities(path)
    assert judges.judge(shown("pump-1", "sécret"), NOW_S) is None, "it has to be waited for"
    found = slowly(judges, shown("pump-1", "sécret"))
    assert isinstance(found, Accepted)
    assert (found.name, found.method, found.is_application) == ("pump-1", "file", False)
    assert isinstance(slowly(judges, shown("pump-1", "secret")), Refused)
    asyncio.run(judges.close())


def test_a_hash_is_written_as_it_is_read() -> None:
    made = hashed(b"secret")
    assert made.text().startswith("$7$20000$")
    assert parsed(made.text()) == made
    assert made.fits(b"secret")
    assert not made.fits(b"Secret")
    assert hashed(b"secret") != made, "salt differs"
    assert "digest" not in repr(made)
    plain = Hashed(0, b"salt", made.digest)
    assert parsed(plain.text()) == plain


@pytest.mark.parametrize(
    "text",
    [
        "",
        "secret",
        "$5$AAAA$AAAA",
        "$argon2id$v=19$m=1,t=1,p=1$AAAA$AAAA",
        "$7$0$AAAA$" + "A" * 86 + "==",
        "$7$99999999$AAAA$" + "A" * 86 + "==",
        "$7$101$AAAA$AAAA",
        "$7$101$A$" + "A" * 86 + "==",
        "$6$AAAA$" + "A" * 86 + "==$",
    ],
)
def test_what_is_no_hash_is_none(text: str) -> None:
    assert not is_hash(text)
    with pytest.raises(ValueError, match="neither"):
        parsed(text)


# -- the file


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a\n", "line 1: this is not name:hash"),
        ("# c\n\na:secret\n", "line 3: its hash is neither $7$ nor $6$ of Mosquitto's"),
        ("{a}{a}", "line 2: 'a' stands there for the second time"),
        (":x\n", "line 1: this is not name:hash"),
    ],
)
def test_a_mistake_in_the_file_has_its_line_and_not_its_password(tmp_path: Path, text: str, sentence: str) -> None:
    path = tmp_path / "passwords"
    path.write_text(text.replace("{a}", line("a", "x")))
    with pytest.raises(UserError) as caught:
        identities(path)
    assert f"{path}, {sentence}" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        identities(tmp_path / "none")
    (tmp_path / "binary").write_bytes(b"\xff")
    with pytest.raises(UserError, match="no text in UTF-8"):
        identities(tmp_path / "binary")


def test_only_who_stands_in_the_file_is_its_business(tmp_path: Path) -> None:
    path = tmp_path / "passwords"
    path.write_text("# people\n" + line("analytics", "right"))
    judges = identities(path)
    judges.keys_changed(Keys(current=KEY))
    assert judges.judge(shown("pump-1", "right"), NOW_S) == verdicts.NOBODY_KNOWS
    assert judges.judge(shown("analytics", None), NOW_S) == verdicts.WRONG
    assert isinstance(judges.judge(shown("pump-1", password_of(KEY, "pump-1", 1)), NOW_S), Accepted)
    assert slowly(judges, shown("analytics", "wrong")) == verdicts.WRONG
    found = slowly(judges, shown("analytics", "right"))
    assert isinstance(found, Accepted)
    assert found.is_application
    asyncio.run(judges.close())


def test_a_password_that_was_right_needs_no_second_check_until_its_line_changes(tmp_path: Path) -> None:
    path = tmp_path / "passwords"
    path.write_text(line("a", "one"))
    judges = identities(path)
    slowly(judges, shown("a", "one"))
    assert isinstance(judges.judge(shown("a", "one"), NOW_S), Accepted)
    assert judges.judge(shown("a", "two"), NOW_S) is None
    write(path, line("a", "two"))
    assert look(judges).everybody
    assert judges.judge(shown("a", "one"), NOW_S) is None
    assert slowly(judges, shown("a", "one")) == verdicts.WRONG
    assert isinstance(slowly(judges, shown("a", "two")), Accepted)
    asyncio.run(judges.close())


def test_who_is_taken_out_of_the_file_has_to_go(tmp_path: Path) -> None:
    path = tmp_path / "passwords"
    path.write_text(line("a", "one") + line("b", "one"))
    judges = identities(path)
    found = slowly(judges, shown("a", "one"))
    assert isinstance(found, Accepted)
    assert isinstance(judges.still_allowed(found, NOW_S), Accepted)
    write(path, line("b", "one"))
    assert look(judges).everybody
    assert judges.still_allowed(found, NOW_S) == verdicts.REVOKED
    asyncio.run(judges.close())


def test_a_damaged_file_is_said_once_and_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "passwords"
    path.write_text(line("a", "one"))
    judges = identities(path)
    write(path, "a:oops\n")
    looked = look(judges)
    (sentence,) = looked.sentences
    assert sentence.startswith(f"{path}, line 1: ")
    assert sentence.endswith("; until then what was read before counts.")
    assert not looked.everybody
    assert look(judges).sentences == ()
    assert isinstance(slowly(judges, shown("a", "one")), Accepted)
    path.unlink()
    assert "cannot be read" in look(judges).sentences[0]
    assert isinstance(slowly(judges, shown("a", "one")), Accepted)
    asyncio.run(judges.close())


def test_a_file_that_is_written_in_place_sends_nobody_away(tmp_path: Path) -> None:
    path = tmp_path / "passwords"
    whole = line("a", "one") + line("b", "one")
    path.write_text(whole)
    judges = identities(path)
    found = slowly(judges, shown("b", "one"))
    assert isinstance(found, Accepted)
    for part in ("", line("a", "one"), whole):
        write(path, part)
        assert look_once(judges) == Looked(), "it is not yet known whether that is all of it"
        assert isinstance(judges.still_allowed(found, NOW_S), Accepted)
    assert look_once(judges).everybody
    assert isinstance(judges.still_allowed(found, NOW_S), Accepted)
    asyncio.run(judges.close())


def test_an_emptied_file_counts_when_it_stays_empty(tmp_path: Path) -> None:
    path = tmp_path / "passwords"
    path.write_text(line("a", "one"))
    judges = identities(path)
    found = slowly(judges, shown("a", "one"))
    assert isinstance(found, Accepted)
    write(path, "")
    (sentence,) = look(judges).sentences
    assert sentence.startswith(f"{path} holds nothing any more: ")
    for _ in range(EMPTIED_LOOKS - SETTLED_LOOKS - 1):
        assert look_once(judges) == Looked()
        assert isinstance(judges.still_allowed(found, NOW_S), Accepted)
    assert look_once(judges).everybody
    assert judges.still_allowed(found, NOW_S) == verdicts.REVOKED
    write(path, line("a", "one"))
    assert look(judges).everybody
    assert isinstance(judges.still_allowed(found, NOW_S), Accepted)
    asyncio.run(judges.close())


@pytest.mark.parametrize("damage", [b"a:oops\n", b"\xff", None])
def test_a_file_that_is_damaged_when_a_process_is_replaced_turns_its_method_off(
    tmp_path: Path, damage: bytes | None
) -> None:
    path = tmp_path / "passwords"
    if damage is not None:
        path.write_bytes(damage)
    judges = identities(path, "broker", strict=False)
    judges.keys_changed(Keys(current=KEY))
    (sentence,) = look_once(judges).sentences
    assert sentence.startswith(str(path))
    assert sentence.endswith("; until then clients that need it are told to come again.")
    assert look_once(judges) == Looked()
    assert slowly(judges, shown("a", "one")) == verdicts.KEYS_NOT_KNOWN, "the broker is not asked in its place"
    assert isinstance(judges.judge(shown("d", password_of(KEY, "d", 1)), NOW_S), Accepted)
    write(path, line("a", "one"))
    assert look(judges).everybody
    found = slowly(judges, shown("a", "one"))
    assert isinstance(found, Accepted)
    assert found.method == "file"
    assert isinstance(slowly(judges, shown("elsewhere", "x")), Accepted)
    asyncio.run(judges.close())


def test_while_its_file_is_damaged_nobody_is_told_that_he_is_wrong(tmp_path: Path) -> None:
    judges = identities(tmp_path / "none", strict=False)
    assert judges.judge(shown("a", "one"), NOW_S) == verdicts.KEYS_NOT_KNOWN


def test_too_many_who_wait_are_told_to_come_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, hold = tmp_path / "passwords", threading.Event()
    path.write_text(line("a", "one"))
    judges = identities(path)
    monkeypatch.setattr(passwords, "CHECKS_MAX", 3)
    monkeypatch.setattr(passwords, "_fits", lambda *_: hold.wait(10))

    async def scenario() -> list[Accepted | Refused]:
        tasks = [asyncio.create_task(judges.judge_slowly(shown("a", "one"))) for _ in range(3)]
        await asyncio.sleep(0)
        assert judges.judge(shown("a", "one"), NOW_S) == verdicts.TOO_MANY_CHECKS
        assert judges.judge(shown("nobody", "one"), NOW_S) == verdicts.NOBODY_KNOWS, "others do not wait"
        hold.set()
        return list(await asyncio.gather(*tasks))

    assert all(isinstance(one, Accepted) for one in asyncio.run(scenario()))
    asyncio.run(judges.close())


def test_a_hundred_thousand_users_are_read_quickly(tmp_path: Path) -> None:
    text = hashed(b"x").text()
    content = "".join(f"user-{number}:{text}\n" for number in range(100_000)).encode()
    assert len(passwords.read_users("passwords", [content])) == 100_000
