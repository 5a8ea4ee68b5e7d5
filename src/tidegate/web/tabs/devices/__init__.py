"""The tab about devices: how the first one comes, who is refused for who it is, and what is known of one of them."""
