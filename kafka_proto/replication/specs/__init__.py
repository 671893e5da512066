"""The published specs of the replication protocol, a module each: its actions, its `NEXT` and its `FAIRNESS`."""
