"""Every setting there is, in one typed tree: defaults, then a TOML file, then the environment.

A section of the file is a part of the system, a key is one of its settings::

    [broker]
    nodes = 3

The environment overrides it as ``TIDEGATE_BROKER__NODES=3``. A key that nobody knows, a wrong type or a
value out of range is refused with one sentence that names the place, what was found there and what was
expected.
"""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec

from tidegate.brokers.settings import BrokerSettings
from tidegate.controller.settings import ControllerSettings
from tidegate.gateway.identity.settings import IdentitySettings
from tidegate.gateway.settings import GatewaySettings
from tidegate.model.classes import DEFAULT_CLASSES, DeviceClass
from tidegate.model.errors import UserError
from tidegate.pipeline.maintenance.settings import MaintenanceSettings
from tidegate.pipeline.settings import NodeSettings
from tidegate.settings import reading as documents
from tidegate.web.settings import WebSettings

ENVIRONMENT_PREFIX = "TIDEGATE_"
ENVIRONMENT_SEPARATOR = "__"

Section = TypeVar("Section", bound=msgspec.Struct)


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The root of the tree: one field per section."""

    broker: BrokerSettings = msgspec.field(default_factory=BrokerSettings)
    gateway: GatewaySettings = msgspec.field(default_factory=GatewaySettings)
    identity: IdentitySettings = msgspec.field(default_factory=IdentitySettings)
    controller: ControllerSettings = msgspec.field(default_factory=ControllerSettings)
    web: WebSettings = msgspec.field(default_factory=WebSettings)
    node: NodeSettings = msgspec.field(default_factory=NodeSettings)
    maintenance: MaintenanceSettings = msgspec.field(default_factory=MaintenanceSettings)
    classes: Annotated[tuple[DeviceClass, ...], msgspec.Meta(min_length=1, max_length=16)] = DEFAULT_CLASSES

    @property
    def durable(self) -> bool:
        """Whether what is promised has to survive a power failure, in the brokers and in the tables alike."""
        return self.broker.durability == "power-loss"


def load(path: Path | None = None, environment: Mapping[str, str] | None = None) -> Settings:
    """The settings of a file (none: the defaults) with the environment's overrides."""
    tree: dict[str, Any] = {}
    if path is not None:
        tree = documents.checked(_parse(path), Settings, str(path), documents.TOML)
    places = [] if path is None else [str(path)]
    for name, text in sorted((os.environ if environment is None else environment).items()):
        if name.startswith(ENVIRONMENT_PREFIX) and ENVIRONMENT_SEPARATOR in name:
            _override(tree, name, text)
            places.append(name)
    return documents.built(tree, Settings, ", ".join(places), documents.TOML)


def with_options(section: Section, given: Mapping[str, Any]) -> Section:
    """The section with the options of a command line put over it, checked like the file; None means not given."""
    kinds = {field.name: field.type for field in msgspec.structs.fields(section)}
    checked = {
        name: documents.convert(value, kinds[name], f"Option --{name.replace('_', '-')}")
        for name, value in given.items()
        if value is not None
    }
    return msgspec.structs.replace(section, **checked)


def _parse(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path} does not exist: name a TOML file with --config, or leave it out.") from None
    except OSError as error:
        raise UserError(f"{path} cannot be read ({error.strerror}): name a readable TOML file.") from None
    except UnicodeDecodeError:
        raise UserError(f"{path} is not UTF-8 text: a settings file is TOML.") from None
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{path} is not TOML ({_lower_first(str(error))}): correct that line.") from None


def _override(tree: dict[str, Any], name: str, text: str) -> None:
    """Put one variable of the environment into the tree."""
    path = name.removeprefix(ENVIRONMENT_PREFIX).lower().split(ENVIRONMENT_SEPARATOR)
    struct: type[msgspec.Struct] = Settings
    for depth, key in enumerate(path):
        fields = {field.encode_name: field for field in msgspec.structs.fields(struct)}
        here = tuple(path[:depth])
        if key not in fields:
            raise UserError(f"Environment variable {name}: {documents.unknown(key, fields, documents.TOML, here)}")
        section, is_last = documents.struct_of(fields[key].type), depth == len(path) - 1
        if (section is not None) == is_last:
            expected = "a section, not a setting" if is_last else "a setting, not a section"
            raise UserError(f"Environment variable {name}: {documents.TOML.name((*here, key))} is {expected}.")
        if section is None:
            tree[key] = _convert_text(text, fields[key].type, f"Environment variable {name}", (*here, key))
            return
        tree, struct = tree.setdefault(key, {}), section


def _convert_text(text: str, kind: Any, place: str, path: tuple[str, ...]) -> Any:
    """A text of the environment is taken as it stands where that fits, and else as a TOML value (lists)."""
    try:
        return msgspec.convert(text, kind, strict=False)
    except msgspec.ValidationError:
        try:
            value = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            value = text
    if isinstance(value, list) and any(isinstance(one, dict) for one in value):
        return documents.checked_value(value, kind, place, documents.TOML, path)  # as in a file
    return documents.convert(value, kind, f"{place}: the value")


def _lower_first(text: str) -> str:
    return text[:1].lower() + text[1:]
