"""What Prometheus scrapes: the view in base units, without a label per device.

A value that is not known has no sample: an alert may then ask for its absence, and nobody trusts a false zero.

``exposition`` makes the text of what the modules named after the parts of an installation yield. A new metric goes into
the one it is about, and into ``docs/metrics.md``.
"""
