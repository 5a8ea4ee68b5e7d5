"""Who a client is, and what it may do: decided by the gateway, before a broker sees the client.

``settings.py`` is what an operator chooses; ``rights.py`` is what a client may do once it is known.
"""
