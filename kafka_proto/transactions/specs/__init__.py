"""The published specs of the transaction protocol, a module each: its actions, its `NEXT` and its `FAIRNESS`.

One slot per variable and index; messages travel on the specs' unordered set; a commit replicates to every broker at
once and a look-up of the coordinator is atomic.
"""
