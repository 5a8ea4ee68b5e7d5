"""The Delta tables: what is written, under which fence, and how it is proven that nothing is missing."""
