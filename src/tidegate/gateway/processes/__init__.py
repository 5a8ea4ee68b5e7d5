"""The processes of one gateway: started, replaced, upgraded, and what each of them is told."""
