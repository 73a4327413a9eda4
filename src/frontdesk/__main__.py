"""`python -m frontdesk`: the command line."""

from frontdesk.cli.app import main

if __name__ == "__main__":
    main()
