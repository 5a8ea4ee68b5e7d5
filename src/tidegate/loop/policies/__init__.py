"""The loop's policies: each looks at what is known, and says what it wants of which resources."""
