"""What every client of the matrix shows of itself: passwords, certificates and tokens; right, wrong and expired ones.

They are made as an operator makes them: by ``tidegate device``, ``mosquitto_passwd``, an authority, a signer of tokens.
"""

import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from tidegate_bench.identity.authorities import HOUR_S, Authority, TokenSigner
from tidegate_bench.identity.cells import ANOTHERS_NAME, EXPIRED, REVOKED, WRONG, Cell
from tidegate_bench.identity.commands import issued, named, tidegate
from tidegate_bench.identity.service import Account, AccountService
from tidegate_bench.rig.programs import installed

NOT_IT = "not-the-password"


class Proof(msgspec.Struct, frozen=True, kw_only=True):
    user: str | None = None
    password: str | None = None
    certificate: Path | None = None

    def __repr__(self) -> str:
        return f"Proof(user={self.user!r}, certificate={self.certificate})"


class Proofs:
    """``password_file`` and ``broker_passwords`` are Mosquitto's, for the gateway and for the broker itself."""

    def __init__(self, directory: Path, state: Path, cells: Sequence[Cell], service: AccountService) -> None:
        self._directory, self._state = directory, state
        self._service = service
        self.devices, self.strangers = Authority(directory, "devices"), Authority(directory, "strangers")
        self.signer, self._forger = (TokenSigner(directory / f"{name}-tokens.pem") for name in ("own", "other"))
        self.password_file, self.broker_passwords = directory / "passwords", directory / "broker-passwords"
        self._makers: dict[str, Callable[[Cell], Proof]] = {
            "derived": self._derived,
            "file": self._secret,
            "certificate": self._certificate,
            "jwt": self._token,
            "http": self._secret,
            "broker": self._secret,
        }
        played = [cell for cell in cells if not cell.not_applicable]
        self._issue(played)
        self._write_passwords(played)
        self._open_accounts(played)

    def of(self, cell: Cell) -> Proof:
        """Of its client, as the case wants it."""
        proof = self._makers[cell.method](cell)
        return msgspec.structs.replace(proof, user=cell.victim) if cell.case == ANOTHERS_NAME else proof

    def application(self, name: str) -> Proof:
        user, password = self._passwords(name)
        return Proof(user=user, password=password)

    # -- one method each

    def _derived(self, cell: Cell) -> Proof:
        user, password = self._passwords(cell.client)
        if cell.case == WRONG:
            password = password[:-1] + ("A" if password[-1] != "A" else "B")
        return Proof(user=user, password=password)

    def _secret(self, cell: Cell) -> Proof:
        return Proof(user=cell.client, password=NOT_IT if cell.case == WRONG else _secret(cell.client))

    def _certificate(self, cell: Cell) -> Proof:
        authority = self.strangers if cell.case == WRONG else self.devices
        return Proof(certificate=authority.signed(cell.client, has_expired=cell.case == EXPIRED))

    def _token(self, cell: Cell) -> Proof:
        signer = self._forger if cell.case == WRONG else self.signer
        return Proof(user=cell.client, password=signer.signed(cell.client, has_expired=cell.case == EXPIRED))

    # -- what has to be known beforehand

    def _issue(self, played: Sequence[Cell]) -> None:
        """Passwords of the installation, for who uses them; then old generations end, and names are revoked."""
        clients = {cell.client for cell in played if cell.method == "derived"}
        self._passwords = issued(self._state, self._directory / "issued.csv", sorted({*clients, *APPLICATIONS}))
        old = [cell.client for cell in played if cell.method == "derived" and cell.case == EXPIRED]
        listed, out = named(self._directory / "old.txt", old), str(self._directory / "new.csv")
        tidegate("device", "rotate", "--from", listed, "--grace", "0", "--out", out, state=self._state)
        revoked = [cell.client for cell in played if cell.case == REVOKED]
        listed = named(self._directory / "revoked.txt", revoked)
        tidegate("device", "revoke", "--from", listed, state=self._state)

    def _write_passwords(self, played: Sequence[Cell]) -> None:
        for path, method in ((self.password_file, "file"), (self.broker_passwords, "broker")):
            path.write_text("".join(f"{name}:{_secret(name)}\n" for name in _people(played, method)))
            hash_passwords(path)

    def _open_accounts(self, played: Sequence[Cell]) -> None:
        accounts = {name: Account(_secret(name)) for name in _people(played, "http")}
        for cell in played:
            if cell.method == "http" and cell.case == EXPIRED:
                accounts[cell.client] = Account(_secret(cell.client), expires_s=time.time() - HOUR_S)
        self._service.accounts.update(accounts)


LISTENER, DISPATCHER = "listener", "dispatcher"
APPLICATIONS = (LISTENER, DISPATCHER)


def hash_passwords(path: Path) -> None:
    """Every line of ``name:password`` becomes one that a password file has."""
    subprocess.run([installed("mosquitto_passwd", "mosquitto"), "-U", str(path)], check=True, capture_output=True)


def _people(played: Sequence[Cell], method: str) -> list[str]:
    """Clients and victims: a name that nobody knows would be refused for that."""
    of_method = [cell for cell in played if cell.method == method]
    return sorted({cell.client for cell in of_method} | {cell.victim for cell in of_method})


def _secret(name: str) -> str:
    return f"secret of {name}"
