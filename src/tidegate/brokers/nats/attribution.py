"""Which slice a device's readings go to: the server's own function (``partition(n,1)``), for use outside it.

The server hashes the device's level of the subject with FNV-1a, 32 bits, and takes the rest of a division.
"""

_OFFSET, _PRIME, _BITS = 0x811C9DC5, 0x01000193, 0xFFFFFFFF


def slice_of(device: str, slices: int) -> int:
    hashed = _OFFSET
    # The broker writes a topic's dot as two slashes.
    for byte in device.replace(".", "//").encode():
        hashed = (hashed ^ byte) * _PRIME & _BITS
    return hashed % slices
