"""Whether the tables have every reading that a gateway acknowledged, while the system runs.

``checker.py`` is what a process calls: it reads the gateways' reports from the journal and the tables' new rows
(``stored.py``), and asks the log how far everything acknowledged by now reaches (``marks.py``, pure). ``book.py``, pure
as well, subtracts one from the other. What is left although the tables have passed it is looked up in the tables
themselves, twice, and only then called missing.
"""
