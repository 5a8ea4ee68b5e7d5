"""The process that Spark forks its Python workers from, with everything they need loaded before the fork.

Workers then start in milliseconds instead of importing Arrow and Delta for a second each. And Spark's workers collect
garbage after every task: what is loaded here is frozen, so that those collections do not walk half a million objects
that never die, which took 60 ms a task, more than a small task itself.
"""

import gc
import importlib
import sys

from pyspark.daemon import manager

PRELOADED = (
    "pandas",
    "pyspark.worker",
    "pyspark.sql.worker.plan_data_source_read",
    "tidegate.pipeline.sources.slices",
    "tidegate.pipeline.tables.writing",
)

if __name__ == "__main__":
    if sys.argv[1:] == ["pyspark.worker"]:
        for name in PRELOADED:
            importlib.import_module(name)
    gc.collect()
    gc.freeze()
    gc.disable()  # a collection after every task is enough; within one they cost a tenth of it and find nothing
    manager()
