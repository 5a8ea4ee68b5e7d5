"""Whether a message is anywhere: in the log as its leader has it, or in the copy of any broker."""

from tidegate.brokers.nats.ingest import slice_stream
from tidegate.bus.jetstream import API, NO_MESSAGE_FOUND, ask_all
from tidegate.bus.wire import Wire
from tidegate.model.errors import BrokerUnavailableError

_NOT_FOUND = "404"
TIMEOUT_S = 1.0


def next_sequence(wire: Wire, slice_: int, sequence: int) -> int | None:
    """The lowest sequence from this one on that is to be had. The leader is asked first: it mostly has the message."""
    stream, wanted = slice_stream(slice_), {"seq": sequence, "next_by_subj": ">"}
    (reply,) = ask_all(wire, [(f"STREAM.MSG.GET.{stream}", wanted)], tolerated=frozenset({NO_MESSAGE_FOUND}))
    found = [int(reply["message"]["seq"])] if "message" in reply else []
    if sequence not in found:
        found += [its for url in wire.urls if (its := _in_copy(url, stream, sequence)) is not None]
    return min(found, default=None)


def _in_copy(url: str, stream: str, sequence: int) -> int | None:
    """What is answered at this address: from that broker's own copy as a rule, else from another's."""
    with Wire([url], timeout_s=TIMEOUT_S, name="tidegate-finding") as asking:
        frame = asking.request(f"{API}.DIRECT.GET.{stream}", b'{"seq":%d,"next_by_subj":">"}' % sequence)
    fields = frame.fields()
    if "Nats-Sequence" in fields:
        return int(fields["Nats-Sequence"])
    if fields.get("Status") != _NOT_FOUND:
        raise BrokerUnavailableError(f"{stream} does not say whether it has message {sequence}: try again.")
    return None
