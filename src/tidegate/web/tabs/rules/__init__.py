"""The tab about rules: which are followed, which events are under way, and what fired when."""
