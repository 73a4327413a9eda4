"""Who is invited."""
