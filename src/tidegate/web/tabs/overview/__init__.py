"""The first tab: the chain from devices to tables, how old data is, the last decisions."""
