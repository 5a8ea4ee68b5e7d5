"""``tidegate bench crashes``: a whole installation under faults, judged by what the devices know.

``schedule`` says which faults come when, ``devices`` sends (``sending`` says what, ``records`` keeps it), ``site`` is
the installation, ``faults``, ``aiming`` and ``stores`` do the damage, ``alarms`` listens, ``oracle`` judges, ``rounds``
puts one round together and ``run`` all of them. The oracle takes nothing from the pipeline: it reads the tables with
deltalake.
"""
