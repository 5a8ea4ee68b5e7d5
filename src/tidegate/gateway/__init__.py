"""The MQTT data plane: routes connections to brokers, passes frames both ways, puts advice behind acknowledgements.

Begin with ``server.py``, one gateway process: it opens the listeners (``listening.py``, and ``layers/`` for TLS,
WebSocket and PROXY headers) and makes a ``DeviceSide`` of every connection that comes. ``processes/`` runs several such
processes as one gateway, and ``shared/`` is the memory in which they agree.

* One connection is one machine, ``connection/machine.py``: what happens goes in, instructions come out, and neither
  socket nor clock is in there. ``opening.py`` reads CONNECT, ``reaching.py`` brings a client to a broker
  (``introducing.py`` says under which name), ``session.py`` passes everything behind it, ``passing.py`` and
  ``holding.py`` decide what has to wait, ``translation.py`` stands between an MQTT 5 device and a 3.1.1 broker.
* The asyncio shell around it does what it is told: ``device_side.py`` and ``broker_side.py`` are the two sockets,
  ``dialling_from.py`` opens the second, ``asking.py`` tells a broker that is ill from one that does not like a client,
  ``admitting.py`` whose turn it is to be connected.
* Who a client is and what it may do is decided in ``identity/``, before a broker sees the client.
* ``gate.py`` is what all connections of a process share, ``clients.py`` who they are, ``unknown.py`` those of which
  nobody knows that yet;
  ``routing.py`` chooses brokers.
* ``http.py`` and ``ingest.py`` take readings from devices that do not speak MQTT: ``http_credentials.py`` says who
  sends a request, ``http_credits.py`` and ``http_holding.py`` what it pays and how it waits, and
  ``http_connections.py`` who may connect.
"""
