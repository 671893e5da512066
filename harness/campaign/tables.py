"""A campaign's tables as Spark sees them: the committed rows, whole or of one scenario or day."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harness.campaign.cells import Cell
from harness.campaign.schemas import PARTITIONS, SCHEMAS
from harness.campaign.store import CampaignStore, CommittedBlock
from harness.model import Refusal

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class CampaignTables:
    """The committed rows of a campaign. Raises Refusal if a file is not as it was written."""

    def __init__(
        self, spark: SparkSession, store: CampaignStore, what: str | None = None, day: str | None = None
    ) -> None:
        self.spark = spark
        self.store = store
        self.cells: dict[str, Cell] = {cell.key: cell for cell in store.manifest().cells}
        """By key; those of the rows that were asked for."""
        if what is not None:
            self.cells = {key: cell for key, cell in self.cells.items() if cell.what == what}
            if not self.cells:
                raise Refusal(f"{store.folder} has no runs of {what!r}; see {store.folder}/campaign.json")
        self.blocks: list[CommittedBlock] = [block for block in store.committed().values()
                                             if block.cell in self.cells and day in (None, block.day)]
        store.verify(self.blocks)

    def frame(self, table: str) -> DataFrame:
        """Return the rows of a table, with the columns `what` and `day`."""
        from pyspark.sql.pandas.types import from_arrow_schema
        from pyspark.sql.types import StringType

        schema = from_arrow_schema(SCHEMAS[table])
        for name in PARTITIONS:
            schema = schema.add(name, StringType())
        files = [str(path.resolve()) for path in self.store.files(table, self.blocks)]
        if not files:
            return self.spark.createDataFrame([], schema)
        base = str((self.store.folder / table).resolve())
        return self.spark.read.schema(schema).option("basePath", base).parquet(*files)
