"""Deleting from the slices what the tables have."""

from collections.abc import Mapping

from tidegate.brokers.nats.ingest import slice_stream
from tidegate.bus.jetstream import ask_all
from tidegate.bus.wire import Wire
from tidegate.model.errors import SequenceGapError


def purge_committed(wire: Wire, committed: Mapping[int, int]) -> dict[int, int]:
    """Delete what the tables have: below the committed sequence, never that message itself nor any above.

    The message at the committed sequence stays: its time stamp is evidence, and the stream finds in it how
    far it has sourced. Returns how many messages went, per slice.
    """
    numbers = sorted(committed)
    infos = ask_all(wire, [(f"STREAM.INFO.{slice_stream(number)}", None) for number in numbers])
    due = []
    for number, info in zip(numbers, infos, strict=True):
        first, last = int(info["state"]["first_seq"]), int(info["state"]["last_seq"])
        # A purge beyond the end moves the end: the sequences between would never be written.
        if committed[number] > last:
            raise SequenceGapError(
                f"{slice_stream(number)} ends at {last}, but {committed[number]} is said to be committed: nothing "
                "was deleted; start the brokers and the tables from the same state directory.",
                where=slice_stream(number),
                expected=committed[number],
                found=last,
            )
        if committed[number] > first:
            due.append(number)
    replies = ask_all(wire, [(f"STREAM.PURGE.{slice_stream(number)}", {"seq": committed[number]}) for number in due])
    purged = dict.fromkeys(numbers, 0)
    purged.update({number: int(reply["purged"]) for number, reply in zip(due, replies, strict=True)})
    return purged
