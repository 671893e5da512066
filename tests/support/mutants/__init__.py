"""Wrong edits of protocols and wrong steps of specs, and what catches them."""
