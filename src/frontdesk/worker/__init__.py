"""The worker: delivers invitations, loads files, prunes queue events, beside any number of other
workers.
"""
