"""Documents: files of many formats whose missing translations we fill in, or whose texts we translate in place.

Every byte outside the filled gaps stays as it was. A format finds the gaps of a document and turns a translation into
splices, replacements of bytes; `filling` translates the gaps and applies the splices. To add a format, write a function
from a `Document` to an iterator of `Gap`, list it in `filling.FORMATS`, and its endings in `kinds`.
"""
