"""From the subjects that slices are stored under back to the topics that devices published on."""

import pyarrow as pa

_TOPICS_MAX = 200_000


class _Topics(dict[bytes, str]):
    """Subject to topic, each worked out once.

    ``tg.<slice>.telemetry.a//b`` is the topic ``telemetry/a.b``: the broker writes a topic's dot as two slashes.
    """

    def __missing__(self, subject: bytes) -> str:
        plain = subject.decode().split(".", 2)[2]
        if len(self) >= _TOPICS_MAX:
            self.clear()
        topic = self[subject] = plain.replace("//", "\0").replace(".", "/").replace("\0", ".")
        return topic


_topics = _Topics()


def topics_of(subjects: pa.Array) -> pa.Array:
    """A column of topics. A fleet publishes on few topics again and again: each is looked at once per column."""
    encoded = subjects.dictionary_encode()
    topics = pa.array(list(map(_topics.__getitem__, encoded.dictionary.to_pylist())), pa.string())
    return topics.take(encoded.indices)
