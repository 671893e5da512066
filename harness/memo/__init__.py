"""Interned values, and functions of a state that are remembered by the values that they read. Knows no driver.

`interning` numbers the values of a state's slots; `read_memo` remembers results of a function of a view by what it read
and in which order, `union_memo` by all that any call has read so far. Ids are local to one process.
"""
