"""Who a client is, and what it may do: decided by the gateway, before a broker sees the client.

Begin with ``judging.py``: it asks the methods that ``settings.py`` names, in their order, and keeps what the control
bus says (keys, ``revocations.py``, access; ``following.py`` reads it there). ``verdicts.py`` has the values that go in
and out, ``rights.py`` is what a client may do once it is known. ``methods.py`` is what a method is, with those that
need only a few lines; the others have a module each. Their files are read again when they change (``files.py``).
"""
