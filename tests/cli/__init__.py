"""The command line, each command run as a person or a program would, against real databases of both
kinds.
"""
