"""Bytes to rows: CSV, JSON, workbooks and 834s, independent of mappings, members and accounts."""
