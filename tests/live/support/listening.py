"""What a client needs to speak TLS with a gateway."""

import ssl


def trusting(ca: str, certificate: tuple[str, str] | None = None) -> ssl.SSLContext:
    """Whom it trusts, and what it shows: the files of a certificate and its key."""
    context = ssl.create_default_context(cafile=ca)
    if certificate is not None:
        context.load_cert_chain(*certificate)
    return context
