"""The harness: model, record, explore, simulate and check protocols. It knows no protocol."""
