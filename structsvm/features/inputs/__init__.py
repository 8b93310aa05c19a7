"""Users' inputs in messages: the places where a reader found them, and the columns that training had and they lack."""
