"""Users' inputs in messages: the places where a reader found them, the columns that training had and they lack, and
values that are outliers.
"""
