"""The encounter queue."""
