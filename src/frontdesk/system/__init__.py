"""What operators see of the whole installation: its problems (`problems`), the work that waits and
who does it, its accounts (`state`). The command line and the console show the same.
"""
