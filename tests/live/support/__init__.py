"""What live tests share: running parts, clients of them, and ways to look inside."""
