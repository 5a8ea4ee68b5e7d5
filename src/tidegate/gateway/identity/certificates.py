"""The method ``certificate``: the name in a client's certificate, which its listener has verified."""

import ssl
from collections.abc import Mapping
from typing import Any, Literal

from tidegate.gateway.identity.methods import Answer, Plain
from tidegate.gateway.identity.verdicts import EXPIRED, Certificate, Known, Presented


class Certificates(Plain):
    def __init__(self, name_from: Literal["common_name", "dns", "uri", "email"]) -> None:
        self._name_from = name_from

    def find(self, presented: Presented, now_s: float) -> Answer:
        shown = presented.certificate
        name = None if shown is None else self._name(shown)
        if shown is None or not name:
            return None
        if shown.expires_s is not None and now_s >= shown.expires_s:
            return EXPIRED
        return Known(name=name, expires_s=shown.expires_s)

    def _name(self, shown: Certificate) -> str | None:
        """The first, where a certificate has several: its order is the authority's."""
        if self._name_from == "common_name":
            return shown.common_name
        names = {"dns": shown.dns, "uri": shown.uris, "email": shown.emails}[self._name_from]
        return names[0] if names else None


def certificate_of(peer: Mapping[str, Any] | None) -> Certificate | None:
    """What ``SSLObject.getpeercert`` has of a verified certificate; None where the client has shown none."""
    if not peer:
        return None
    subject = (pair for part in peer.get("subject", ()) for pair in part)
    others = tuple(peer.get("subjectAltName", ()))
    ends = peer.get("notAfter")
    return Certificate(
        common_name=next((value for kind, value in subject if kind == "commonName"), None),
        dns=tuple(value for kind, value in others if kind == "DNS"),
        uris=tuple(value for kind, value in others if kind == "URI"),
        emails=tuple(value for kind, value in others if kind == "email"),
        expires_s=None if ends is None else float(ssl.cert_time_to_seconds(ends)),
    )
