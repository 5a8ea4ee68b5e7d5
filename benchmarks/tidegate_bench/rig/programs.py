"""Programs that benchmarks need beside Python packages."""

import shutil

from tidegate.model.errors import UserError


def installed(program: str, package: str | None = None) -> str:
    """Where it is: servers are not always on a user's own path. ``package`` is what Debian calls it, if otherwise."""
    found = shutil.which(program) or shutil.which(program, path="/usr/sbin:/usr/local/sbin")
    if found is None:
        raise UserError(
            f"The program {program} is not installed: the benchmark needs it, 'apt-get install {package or program}'."
        )
    return found
