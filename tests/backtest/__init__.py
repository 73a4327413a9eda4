"""The back-test of the wait estimate."""
