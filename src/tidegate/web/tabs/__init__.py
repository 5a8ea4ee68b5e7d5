"""One folder per tab. The page makes a tab's panel when it is first looked at, and shows it each new view."""
