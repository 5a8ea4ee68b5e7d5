"""TLS over OpenSSL's memory buffers: records in, plain bytes out, and back.

The event loop's own TLS is not used: a PROXY header comes before the handshake, and one read and one write per chunk
cost less than what it does.
"""

import contextlib
import ssl
from pathlib import Path

import msgspec

from tidegate.gateway.identity.certificates import certificate_of
from tidegate.gateway.layers.layer import Peer
from tidegate.gateway.layers.listener import Listener
from tidegate.model.errors import UserError

RECORD_BYTES_MAX = 16_384
# OpenSSL's memory buffers never shrink. What passes through them at a time is what a connection keeps for ever.
CHUNK_BYTES = 16_384

FAILED = "TLS handshake failed"
NO_CERTIFICATE = "no valid client certificate"
BROKEN = "bad TLS record"


class Tls:
    """The server's end of one TLS connection."""

    __slots__ = ("_context", "_incoming", "_open", "_outgoing", "_tls", "ended", "problem")

    def __init__(self, context: ssl.SSLContext) -> None:
        self.problem = ""
        self.ended = False
        self._open = False
        self._context: ssl.SSLContext | None = context  # until the first byte: a silent client costs next to nothing
        self._incoming: ssl.MemoryBIO
        self._outgoing: ssl.MemoryBIO
        self._tls: ssl.SSLObject

    def receive(self, data: bytes) -> bytes:
        if self._context is not None:
            self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
            self._tls = self._context.wrap_bio(self._incoming, self._outgoing, server_side=True)
            self._context = None
        if len(data) <= CHUNK_BYTES:
            return self._decrypt(data)
        return b"".join(self._decrypt(data[at : at + CHUNK_BYTES]) for at in range(0, len(data), CHUNK_BYTES))

    def _decrypt(self, data: bytes) -> bytes:
        if self.problem or self.ended:
            return b""
        incoming = self._incoming
        incoming.write(data)
        parts: list[bytes] = []
        try:
            if not self._open:
                self._tls.do_handshake()
                self._open = True
            # To be told by an exception that there is no more would cost twice as much as reading does.
            while incoming.pending and not self.ended:
                plain = self._tls.read(RECORD_BYTES_MAX)
                parts.append(plain)
                self.ended = not plain
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError as error:
            self.problem = BROKEN if self._open else _why(error)
            self._open = False
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def send(self, data: bytes) -> bytes:
        if not self._open:
            return b""
        if len(data) <= CHUNK_BYTES:
            self._tls.write(data)
            return self._outgoing.read()
        return b"".join(self.send(data[at : at + CHUNK_BYTES]) for at in range(0, len(data), CHUNK_BYTES))

    def answer(self) -> bytes:
        return self._outgoing.read() if self._context is None and self._outgoing.pending else b""

    def farewell(self) -> bytes:
        if not self._open:
            return b""
        self._open, self.ended = False, True
        with contextlib.suppress(ssl.SSLError):  # it would wait for the peer's farewell, which nobody needs
            self._tls.unwrap()
        return self._outgoing.read()

    def describe(self, peer: Peer) -> Peer:
        if not self._open:
            return peer
        return msgspec.structs.replace(
            peer, tls=self._tls.version(), certificate=certificate_of(self._tls.getpeercert())
        )


def _why(error: ssl.SSLError) -> str:
    missing = error.reason == "PEER_DID_NOT_RETURN_A_CERTIFICATE"
    return NO_CERTIFICATE if missing or isinstance(error, ssl.SSLCertVerificationError) else FAILED


def context_of(listener: Listener) -> ssl.SSLContext:
    """What all connections of a listener share. The files are read now."""
    assert listener.certificate is not None
    assert listener.key is not None
    place = f"The gateway's listener on port {listener.port}"
    _must_hold(b"CERTIFICATE-----", listener.certificate, f"{place}: the certificate")
    _must_hold(b"PRIVATE KEY-----", listener.key, f"{place}: the key")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    context.num_tickets = 1
    context.set_alpn_protocols(["mqtt" if listener.protocol == "mqtt" else "http/1.1"])
    _load_certificate(context, listener.certificate, listener.key, place)
    if listener.client_ca is not None:
        _must_hold(b"CERTIFICATE-----", listener.client_ca, f"{place}: the client_ca")
        try:
            context.load_verify_locations(listener.client_ca)
        except ssl.SSLError as error:
            raise UserError(f"{place}: the client_ca {listener.client_ca} {_unusable(error)}") from None
        context.verify_mode = ssl.CERT_REQUIRED
    return context


class _EncryptedKeyError(Exception):
    pass


def _load_certificate(context: ssl.SSLContext, certificate: str, key: str, place: str) -> None:
    def passphrase() -> bytes:
        raise _EncryptedKeyError

    try:
        context.load_cert_chain(certificate, key, passphrase)
    except _EncryptedKeyError:
        remedy = f"decrypt it (openssl pkey -in {key}) into a file that only the gateway may read"
        raise UserError(
            f"{place}: the key {key} is encrypted and nobody is asked for its passphrase: {remedy}."
        ) from None
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            remedy = "give the two that were made together, the gateway's own certificate first in its file"
            raise UserError(f"{place}: the key {key} is not that of the certificate {certificate}: {remedy}.") from None
        raise UserError(f"{place}: the certificate {certificate} or its key {key} {_unusable(error)}") from None


def _unusable(error: ssl.SSLError) -> str:
    return f"is refused by OpenSSL ({error.reason or error}): give another PEM file."


def _must_hold(mark: bytes, file: str, what: str) -> None:
    """OpenSSL does not say which of its files it could not read, or what it missed in it."""
    try:
        content = Path(file).read_bytes()
    except OSError as error:
        raise UserError(f"{what} {file} cannot be read ({error.strerror}): give the path of a PEM file.") from None
    if mark not in content:
        looked_for = mark.decode().rstrip("-").lower()
        raise UserError(f"{what} {file} holds no {looked_for} in PEM: give a file that does.")
