"""API, dashboard and metrics, all behind a token.

The modules here serve: the server, the token in front of it, the API, and the page with its header and tabs. Below
them, each folder imports only those named before it:

- ``values``: what is shown, before it has a shape: the source of all values, rates from counters, words for people.
- ``metrics``: the same for Prometheus, one module per part of an installation.
- ``components``: what tabs are made of: charts, tables, stations, lists, and the elements that hold them.
- ``tabs``: one folder per tab. Tabs do not import each other; what two of them need goes to one of the above.

A new tab is a new folder in ``tabs`` and one entry in ``TABS`` of ``page.py``. Its ``panel.py`` has the class that the
entry names, which puts elements on the page once and fills them whenever ``show`` is called. What they are filled with
is computed by pure functions in modules named after what they return: ``charts.py``, ``tables.py``, ``sentence.py``.
"""
