"""Campaigns on Spark: many runs in many processes, their tables in Parquet, and checks on these tables.

The only home of pyspark and pyarrow, which come with the extra `spark`; `requirements` says so where they are missing.
What a campaign is and how it goes on after an interrupt: `spark_campaign`. Its folder: docs/use/campaigns.md.
"""
