"""Small protocols that tests need, drawn ones among them."""
