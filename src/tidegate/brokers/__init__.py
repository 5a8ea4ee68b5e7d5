"""Brokers: the embedded NATS servers, their wire protocol, and what is kept in them."""
