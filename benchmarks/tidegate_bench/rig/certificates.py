"""Certificates for listeners with TLS."""

import subprocess
from pathlib import Path

import msgspec

from tidegate.machine.ports import HOST
from tidegate_bench.rig.programs import installed


class Certificate(msgspec.Struct, frozen=True, kw_only=True):
    """PEM files. HAProxy wants both in one."""

    certificate: Path
    key: Path
    both: Path

    @classmethod
    def made(cls, directory: Path) -> "Certificate":
        """One for the loopback address that signs itself: ECDSA on P-256, as most devices meet."""
        made = cls(certificate=directory / "bench.crt", key=directory / "bench.key", both=directory / "bench.pem")
        command = [installed("openssl"), "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
        command += ["-nodes", "-days", "2", "-subj", "/CN=tidegate-bench", "-addext", f"subjectAltName=IP:{HOST}"]
        command += ["-keyout", str(made.key), "-out", str(made.certificate)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        made.both.write_bytes(made.certificate.read_bytes() + made.key.read_bytes())
        return made
