"""The pictures of the site's pages, drawn at its build from what the library computes."""
