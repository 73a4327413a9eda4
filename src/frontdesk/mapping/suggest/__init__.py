"""Suggests a mapping for a file with names of its own (docs/file-formats.md, Let a mapping be
suggested).
"""
