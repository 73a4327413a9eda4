"""Bytes to rows: CSV, JSON, workbooks and 834s as they are written. It knows no mapping, no member and no account."""
