"""Filling in other people's files: what is missing is translated, and every other byte stays as it was.

A format finds the gaps of a document and says how a translation is written into one; `filling` translates and puts the
pieces together. To add a format, write a function from a `Source` to an iterator of `Gap` and name it in `FORMATS`.
"""
