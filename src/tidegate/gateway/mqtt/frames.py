"""Cuts a stream of MQTT bytes into whole packets: the innermost loop of the gateway.

Plain typed Python that imports nothing of ours, so that it can be compiled as it stands. A chunk that holds only
whole packets, which is nearly every chunk, is given back as it came: nothing is copied, and the caller can forward it
in one write. Only the unfinished packet at a chunk's end is kept.
"""

LENGTH_BYTES_MAX = 4
_RESERVED = (0x00, 0xF0)

# (first byte, start of the body, end): positions in the bytes that came with it. A packet starts where the last ended.
Frame = tuple[int, int, int]


def frame_size(data: bytes | bytearray, position: int) -> tuple[int, int]:
    """(bytes of the fixed header, bytes of the packet) at a position; (0, 0) where more are needed, (-1, -1) never."""
    length = 0
    for index in range(LENGTH_BYTES_MAX):
        place = position + 1 + index
        if place >= len(data):
            return 0, 0
        byte = data[place]
        length |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return index + 2, index + 2 + length
    return -1, -1


class FrameScanner:
    """One direction of one connection. It holds at most one unfinished packet of at most ``packet_bytes_max``."""

    def __init__(self, packet_bytes_max: int) -> None:
        self.problem = ""  # why no further packet can be cut; the packets before it are still good
        self._packet_bytes_max = packet_bytes_max
        self._tail = bytearray()
        self._needed = 0

    def scan(self, chunk: bytes) -> tuple[bytes, list[Frame]]:
        """Bytes that are whole packets, and where each of them lies."""
        frames: list[Frame] = []
        if self.problem:
            return b"", frames
        data = chunk
        if self._tail:
            self._tail += chunk
            if len(self._tail) < self._needed:
                return b"", frames
            data = bytes(self._tail)
            self._tail.clear()
        position, size = 0, len(data)
        while position < size:
            first = data[position]
            if position + 1 < size and data[position + 1] < 0x80:
                body = position + 2
                end = body + data[position + 1]
            else:
                header, total = frame_size(data, position)
                if header <= 0:
                    self._stop(data, position, size - position + 1, header)
                    break
                body, end = position + header, position + total
            if end - position > self._packet_bytes_max or first & 0xF0 in _RESERVED:
                self._stop(data, position, end - position, -1 if first & 0xF0 in _RESERVED else 1)
                break
            if end > size:
                self._stop(data, position, end - position, 0)
                break
            frames.append((first, body, end))
            position = end
        return (data if position == size else data[:position]), frames

    def _stop(self, data: bytes, position: int, needed: int, verdict: int) -> None:
        """The rest is unfinished (0), is no MQTT (-1) or is too large (1)."""
        if verdict == 0:
            self._needed = needed
            self._tail += data[position:]
        else:
            self.problem = "not MQTT" if verdict < 0 else "packet too large"
