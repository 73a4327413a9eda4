"""The sandbox's mailbox."""
