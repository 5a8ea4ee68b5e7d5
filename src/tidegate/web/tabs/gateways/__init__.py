"""The tab about gateways: what goes through them, whom they hold and why, whom they refuse, and how loaded they are."""
