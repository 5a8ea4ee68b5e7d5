"""MQTT 3.1, 3.1.1 and 5 without IO and without a clock.

Begin with ``packets.py``: ``parse`` and ``encode``, and every kind of packet as a value. Behind it are ``kinds.py``
(the values), ``parsing.py`` and ``encoding.py``, made of ``connect.py``, ``properties.py``, ``names.py`` and
``fields.py``; ``violations.py`` says what is wrong with a packet, ``rules.py`` which side may say what and when.

``frames.py`` cuts a stream into whole packets; it is the gateway's innermost loop and is compiled. ``client.py`` is the
little that a device needs: it stands on ``fields.py``, ``frames.py`` and ``connect_layout.py`` alone.
"""
