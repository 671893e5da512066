"""The log of a partition: batches, what a broker derives from them about producers and transactions, how it is read.

Everything is derived: a log is what `append` makes of its batches one by one, on a leader, on a follower, and on a new
leader that reads its own disk again (`rebuild`). What may be appended is decided by the leader (`broker.leader`).
"""

from kafka_proto.log.partition_log import EMPTY_LOG, PartitionLog, append, with_high_watermark
from kafka_proto.log.reading import aborted_between, batches_between, visible
from kafka_proto.log.records import Marker, RecordBatch, marker_batch
from kafka_proto.log.removal import delete_records, forget_deleted_producers, open_from_start, rebuild, truncate

__all__ = [
    "EMPTY_LOG", "Marker", "PartitionLog", "RecordBatch", "aborted_between", "append", "batches_between",
    "delete_records", "forget_deleted_producers", "marker_batch", "open_from_start", "rebuild", "truncate", "visible",
    "with_high_watermark",
]
