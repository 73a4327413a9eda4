"""The rules of a member record."""
