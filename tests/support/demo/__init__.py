"""The demo as tests use it: sessions, its server, its page in a browser, its terminal."""
