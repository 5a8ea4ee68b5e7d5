"""The tab about the pipeline: its processing nodes, their slices, and what they can take."""
