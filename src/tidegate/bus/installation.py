"""The file by which every part finds the control bus: written by whoever starts the brokers, read by the others."""

from pathlib import Path

import msgspec

from tidegate.machine.private_files import write_private
from tidegate.model.errors import UserError
from tidegate.model.installation import Installation

FILE_NAME = "installation.json"


def save_installation(installation: Installation, state_directory: Path) -> Path:
    path = state_directory / FILE_NAME
    write_private(path, msgspec.json.format(msgspec.json.encode(installation)))
    return path


def load_installation(state_directory: Path) -> Installation:
    path = state_directory / FILE_NAME
    try:
        return msgspec.json.decode(path.read_bytes(), type=Installation)
    except FileNotFoundError:
        raise UserError(
            f"No running installation in {state_directory}: start one with 'tidegate up', or name its directory with "
            "--state."
        ) from None
    except OSError as error:
        raise UserError(
            f"{path} cannot be read ({error.strerror}): name the directory of an installation of yours with --state."
        ) from None
    except msgspec.DecodeError as error:
        raise UserError(f"{path} is damaged ({error}): restart 'tidegate up', which writes it anew.") from None
