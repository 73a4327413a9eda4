"""Invitations: rules, messages, reports, suppression."""
