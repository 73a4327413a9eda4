"""The database part on both databases."""
