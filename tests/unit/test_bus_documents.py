"""The catalogue of the control bus: what stands in it, and how a document that is not what it says is told."""

import re
from pathlib import Path

import pytest

from tidegate.bus import documents
from tidegate.bus.documents import (
    ADVICE,
    AUDIT,
    DOCUMENTS,
    GATEWAYS,
    JOBS,
    JOURNALS,
    MODE,
    OFFSETS,
    SCALE,
    Document,
    named,
)
from tidegate.model.advice import Advice
from tidegate.model.errors import DamagedDocumentError

PARTS = {"controller", "leader", "gateway", "node", "maintainer", "up", "operator", "job"}
SOURCE = Path(documents.__file__).parents[1]
PAGE = Path(__file__).parents[2] / "docs" / "control-bus.md"


def test_every_key_stands_for_one_document() -> None:
    keys = [document.key for document in DOCUMENTS]
    assert len(set(keys)) == len(keys)
    for document in DOCUMENTS:
        key = document.key_of("some-name" if document.per else "")
        assert named(key) is document


@pytest.mark.parametrize(
    "key", ["advices", "advice.node-1", "lease", "lease.node-1.x", "policy", "policy.slicing", "", "gateways."]
)
def test_a_key_that_nobody_declared_belongs_to_no_document(key: str) -> None:
    assert named(key) is None


def test_every_document_has_writers_and_readers_that_are_parts() -> None:
    for entry in (*DOCUMENTS, *JOURNALS):
        assert entry.says
        assert entry.written_by
        assert entry.read_by
        assert set(entry.written_by) | set(entry.read_by) <= PARTS


def test_a_name_belongs_to_documents_of_which_there_are_several() -> None:
    assert GATEWAYS.key_of("g-1") == "gateways.g-1"
    with pytest.raises(ValueError, match="kept per gateway"):
        GATEWAYS.key_of()
    with pytest.raises(ValueError, match="kept per nothing"):
        ADVICE.key_of("g-1")


def test_an_offset_of_a_job_below_0_is_damage_and_not_a_very_high_one() -> None:
    assert JOBS.decode(b'{"0": 0, "1": 7}', "nightly") == {0: 0, 1: 7}
    with pytest.raises(DamagedDocumentError, match=r"'jobs.nightly' .* >= 0"):
        JOBS.decode(b'{"0": -1}', "nightly")


def test_what_is_written_is_read_again() -> None:
    advice = Advice(interval_s=1.5, lifetime_s=10, classes={"alarm": 0.0})
    assert ADVICE.decode(ADVICE.encode(advice)) == advice
    assert OFFSETS.decode(OFFSETS.encode({0: 7, 12: 9})) == {0: 7, 12: 9}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "truncated"),
        (b"{", "truncated"),
        (b'{"interval_s":1,"lifetime_s":1,"classes":{"\xff":1}}', "utf-8"),
        (b'{"x":' + b"[" * 100_000, "recursion"),
        (b"[]", "Expected `object`"),
        (b'{"interval_s": -1}', ">= 0"),
        (b'{"interval_s":1,"lifetime_s":0}', "> 0"),
    ],
)
def test_a_damaged_document_is_told_with_its_evidence(content: bytes, problem: str) -> None:
    with pytest.raises(DamagedDocumentError, match=re.escape(problem)) as caught:
        ADVICE.decode(content)
    error = caught.value
    assert (error.where, error.expected, error.found) == ("advice", Advice, content)
    assert str(error).startswith("The document 'advice' on the control bus is damaged")


def test_a_damaged_document_of_several_names_the_one() -> None:
    with pytest.raises(DamagedDocumentError, match=r"'jobs\.nightly'"):
        JOBS.decode(b'{"zero": 0}', "nightly")


def test_a_remedy_that_is_known_is_said() -> None:
    with pytest.raises(DamagedDocumentError, match="'tidegate release' writes it again"):
        MODE.decode(b"{{")
    with pytest.raises(DamagedDocumentError, match="its writer writes it again soon"):
        SCALE.decode(b"{{")


def test_what_must_not_outlive_its_writer_is_never_put_without_a_lease() -> None:
    GATEWAYS.check_lease(5.0)
    SCALE.check_lease(None)
    with pytest.raises(ValueError, match="'advice' is kept under a lease"):
        ADVICE.check_lease(None)


def test_a_record_that_cannot_be_read_is_none() -> None:
    assert AUDIT.decode(b"{}") is None
    assert AUDIT.decode(b"\x00") is None


# Which part the code of a folder is; code that everybody shares belongs to none.
PART_OF = {
    "controller": "controller",
    "gateway": "gateway",
    "pipeline": "node",
    "pipeline/completeness": "maintainer",
    "pipeline/maintenance": "maintainer",
    "local": "up",
    "cli": "operator",
}
STANDS_FOR = {
    "SLICES": "Assignments(",
    "NODE_LEASES": "ssignments.alive()",
    "LEADER": "LeaderLease(",
    "GAPS": "NotedGaps(",
    "IDENTITY_KEYS": "identity.settle(",
    "REGISTER": "register.change(",
    "REVOKED": "identity.settle(",
    "REVOCATIONS": "identity.settle(",
}


def folders_that_use(name: str) -> set[str]:
    """Parts whose code names a document, itself or by what stands for it in the bus."""
    words = [re.compile(rf"\b{name}\b"), re.compile(re.escape(STANDS_FOR.get(name, name)))]
    return {
        part
        for folder, part in PART_OF.items()
        for file in (SOURCE / folder).rglob("*.py")
        if folder_of(file) == folder and any(word.search(_code(file)) for word in words)
    }


def folder_of(file: Path) -> str:
    """The innermost folder that is a part."""
    folders = [str(parent.relative_to(SOURCE)) for parent in file.parents if parent.is_relative_to(SOURCE)]
    return next(folder for folder in folders if folder in PART_OF)


def _code(file: Path) -> str:
    """Without the imports, which name more than they use."""
    return "\n".join(line for line in file.read_text().splitlines() if not line.startswith(("from ", "import ")))


@pytest.mark.parametrize("name", [name for name, value in vars(documents).items() if isinstance(value, Document)])
def test_who_writes_and_reads_is_as_the_code_has_it(name: str) -> None:
    document = getattr(documents, name)
    said = {"controller" if part == "leader" else part for part in (*document.written_by, *document.read_by)}
    assert folders_that_use(name) == said - {"job"}


def test_the_page_on_the_control_bus_lists_the_catalogue() -> None:
    """Row by row: key, what it says, who writes it, who reads it."""
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    assert rows == [
        f"| `{document.key}{f'.<{document.per}>' if document.per else ''}` | {document.says} "
        f"| `{document.type.__name__}` | {', '.join(document.written_by)} | {', '.join(document.read_by)} "
        f"| {'yes' if document.leased else 'no'} |"
        for document in DOCUMENTS
    ]
