"""The SQL of invitations."""
