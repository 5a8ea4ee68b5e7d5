"""From the subjects that slices are stored under back to the topics that devices published on, as columns."""

from sys import getsizeof

import pyarrow as pa

from tidegate.brokers.nats.subjects import topic_of

# In bytes, because a topic may have 64 KB: room for 250,000 topics of 40 bytes.
TOPICS_BYTES_MAX = 64 * 1024**2
_ENTRY_BYTES = 104  # what the dictionary itself takes, when it has just grown


class Topics(dict[bytes, str]):
    """Subject (``tg.<slice>.telemetry.…``) to topic, each worked out once. When it is full it begins anew."""

    def __init__(self, bytes_max: int = TOPICS_BYTES_MAX) -> None:
        super().__init__()
        self._bytes_max = bytes_max
        self._bytes = 0

    def __missing__(self, subject: bytes) -> str:
        topic = topic_of(subject.decode().split(".", 2)[2])
        self._bytes += getsizeof(subject) + getsizeof(topic) + _ENTRY_BYTES
        if self._bytes > self._bytes_max:
            self.clear()
            self._bytes = getsizeof(subject) + getsizeof(topic) + _ENTRY_BYTES
        self[subject] = topic
        return topic


_topics = Topics()


def topics_of(subjects: pa.Array) -> pa.Array:
    """A column of topics. A fleet publishes on few topics again and again: each is looked at once per column."""
    encoded = subjects.dictionary_encode()
    topics = pa.array(list(map(_topics.__getitem__, encoded.dictionary.to_pylist())), pa.string())
    return topics.take(encoded.indices)
