"""The tab about the pipeline: its nodes, their batches and slices, what they can take, and the tables' health."""
