"""Reads a sheet of a workbook (.xlsx) in a process of its own, `python -m frontdesk.workbooks`, which imports nothing else of the
package: it starts in 0.1 s and has its memory for itself (docs/decisions/0090). `files.readers.workbook` starts it.
"""
