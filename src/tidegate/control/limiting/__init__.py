"""How much a client, or all clients on some topics, may send: buckets, credits, and what waits for them."""
