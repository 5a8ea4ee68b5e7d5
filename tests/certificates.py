"""Certificates for tests, made anew with the openssl command: an authority, and who it vouches for."""

import subprocess
from pathlib import Path

NAMES = "subjectAltName=DNS:localhost,IP:127.0.0.1"
NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


class Authority:
    """Its own certificate is ``<name>.pem`` in the directory; so is that of everybody whom it signs."""

    def __init__(self, directory: Path, name: str = "authority") -> None:
        self._directory = directory
        self.certificate, self._key = directory / f"{name}.pem", directory / f"{name}.key"
        _openssl("req", "-x509", *NEW_KEY, "-subj", f"/CN={name}", "-keyout", self._key, "-out", self.certificate)

    def sign(self, name: str) -> tuple[str, str]:
        """The files of a new certificate and its key."""
        stem = self._directory / name
        certificate, key, request = stem.with_suffix(".pem"), stem.with_suffix(".key"), stem.with_suffix(".csr")
        names = stem.with_suffix(".names")
        names.write_text(NAMES)
        _openssl("req", *NEW_KEY, "-subj", f"/O=Test/CN={name}", "-keyout", key, "-out", request)
        by = ("-CA", self.certificate, "-CAkey", self._key, "-CAcreateserial")
        _openssl("x509", "-req", "-in", request, *by, "-extfile", names, "-out", certificate)
        return str(certificate), str(key)


def encrypt(key: str, encrypted: Path) -> str:
    _openssl("pkey", "-in", key, "-aes256", "-passout", "pass:secret", "-out", encrypted)
    return str(encrypted)


def _openssl(*arguments: str | Path) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)
