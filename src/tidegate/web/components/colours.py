"""The palette's colours by name. The style sheet gives each its shade, so charts follow light and dark as well."""

from tidegate.report.palette import COLOURS


def colour(name: str) -> str:
    """A colour by its name, for style sheets and SVG alike."""
    assert name in COLOURS, name
    return f"var(--{name})"
