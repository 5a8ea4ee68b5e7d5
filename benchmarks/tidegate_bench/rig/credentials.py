"""As whom the clients of a load connect: the one place where that is decided."""

from tidegate.model.installation import Installation


def credentials(installation: Installation, name: str) -> tuple[str, str]:  # noqa: ARG001 - all are one user so far
    """User and password of the client of that name."""
    return installation.mqtt_user, installation.mqtt_password
