"""What an installation says of its devices: a new one to which nothing has come, and one that refuses and rotates."""

import msgspec

from tidegate.model.clients import ClientAnswer, ClientState, DeviceReport, Ended
from tidegate.model.first_reading import FirstReading
from tidegate.model.limits import LimitMet
from tidegate.model.registration import Entry, Registered, Revocation
from tidegate.model.view import ChainStates, IdentityState, View

PASSWORD = "tg1.k2xyz9.1.Zm9vYmFyZm9vYmFyZm9vYmFy"
FIRST = FirstReading(device="hello", password=PASSWORD, mqtt=("127.0.0.1", 1880), http=("127.0.0.1", 8080))


def with_devices(view: View, scenario: str) -> View:
    if scenario == "devices-new":
        return _new(view)
    now, passed_s = view.samples[-1], int(view.samples[-1].at_s - view.samples[0].at_s)
    gateways = tuple(
        msgspec.structs.replace(
            one,
            refused={
                "wrong credentials": 40 + passed_s // 2,
                "revoked": 3,
                "not its own topic": 7 + passed_s // 5,
                "not MQTT": 12,
            },
        )
        for one in view.chain.gateways
    )
    identity = IdentityState(
        registered=100_412,
        revoked=17,
        access_name="access.yaml",
        access_applied_at_s=now.at_s - 7_300,
        key_id="k2xyz9",
        previous_key_id="k1abc4",
    )
    return msgspec.structs.replace(
        view, chain=msgspec.structs.replace(view.chain, gateways=gateways), identity=identity
    )


def _new(view: View) -> View:
    """Everything runs, and nothing was ever sent."""
    zero = {"age_s": 0.0, "arrival_per_s": 0.0, "departure_per_s": 0.0, "waiting": 0, "devices": 0}
    nothing = {"connections": 0, "publishes": 0, "acknowledged": 0, "advised": 0, "refused": {}, "classes": {}}
    return msgspec.structs.replace(
        view,
        samples=tuple(msgspec.structs.replace(one, **zero) for one in view.samples),
        decisions=(),
        chain=ChainStates(
            gateways=tuple(msgspec.structs.replace(one, **nothing) for one in view.chain.gateways),
            brokers=view.chain.brokers,
            nodes=tuple(msgspec.structs.replace(one, rows=0) for one in view.chain.nodes),
        ),
        identity=IdentityState(registered=0, revoked=0, key_id="k2xyz9"),
    )


async def look_up(name: str) -> DeviceReport:
    """One that is held, one that is revoked, and nothing of any other."""
    if name == "stolen":
        ended = Ended(reason="revoked", at_s=1_794_900_120.0, address="192.0.2.9:51514")
        revoked = Entry(Registered(1, 1_794_000_000.0), Revocation(2, 1_794_900_000.0, True, 2))
        return DeviceReport(name=name, entry=revoked, answers=(ClientAnswer(gateway="gateway-1", ended=ended),))
    if name != "pump-1":
        return DeviceReport(name=name, entry=Entry())
    state = ClientState(
        gateway="gateway-1",
        client_id="pump-1",
        address="192.0.2.7:40112",
        broker="broker-1",
        version="5",
        method="derived",
        credits_left=8_211.0,
        subscriptions=2,
        held=8,
        held_s=3.2,
        limit=LimitMet(limit="its own rate", left=0.0, until_s=0.45, rate_per_s=2.0),
        rate_per_s=2.0,
    )
    ended = Ended(reason="wrong credentials", at_s=1_794_900_120.0, address="192.0.2.7:40110")
    answers = (ClientAnswer(gateway="gateway-1", connections=(state,), ended=ended),)
    return DeviceReport(name=name, entry=Entry(Registered(1, 1_794_000_000.0, "line <4>")), answers=answers)
