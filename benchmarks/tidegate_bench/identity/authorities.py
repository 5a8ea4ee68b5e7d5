"""Certificates and tokens of devices, signed by whom gateways trust, or by somebody else."""

import datetime
import itertools
import time
from pathlib import Path

import jwt
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

HOUR_S = 3_600.0
_PEM = serialization.Encoding.PEM
_NUMBERS = itertools.count()


class Authority:
    """Signs certificates; its own is in ``certificate``."""

    def __init__(self, directory: Path, name: str) -> None:
        self._directory, self._name = directory, _subject(name)
        self._key = ec.generate_private_key(ec.SECP256R1())
        own = _certificate(self._name, self._key.public_key(), self._name, ends_s=24 * HOUR_S)
        constraints = x509.BasicConstraints(ca=True, path_length=None)
        signed = own.add_extension(constraints, critical=True).sign(self._key, hashes.SHA256())
        self.certificate = directory / f"{name}.pem"
        self.certificate.write_bytes(signed.public_bytes(_PEM))

    def signed(self, device: str, *, has_expired: bool = False) -> Path:
        """A file of its own with a device's certificate and its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        made = _certificate(_subject(device), key.public_key(), self._name, ends_s=-HOUR_S if has_expired else HOUR_S)
        path = self._directory / f"{device}-{next(_NUMBERS)}.pem"
        path.write_bytes(made.sign(self._key, hashes.SHA256()).public_bytes(_PEM) + _written(key))
        return path


class TokenSigner:
    """Signs tokens with a key whose public half is in ``public_key``."""

    def __init__(self, path: Path) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self.public_key = path
        kind = serialization.PublicFormat.SubjectPublicKeyInfo
        path.write_bytes(self._key.public_key().public_bytes(_PEM, kind))

    def signed(self, device: str, *, has_expired: bool = False) -> str:
        ends_s = time.time() + (-HOUR_S if has_expired else HOUR_S)
        return jwt.encode({"sub": device, "exp": int(ends_s)}, self._key, algorithm="ES256")


def _subject(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _certificate(
    subject: x509.Name, key: ec.EllipticCurvePublicKey, issuer: x509.Name, *, ends_s: float
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(seconds=ends_s))
    )


def _written(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
