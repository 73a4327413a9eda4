"""The command line door: `frontdesk` and its commands, one file per group."""
