"""A model of CRF++, as text and as the binary file that ``crf_learn`` writes."""

import struct

TEXT = b"""version: 100
cost-factor: 1
maxid: 8
xsize: 1

A
B

U0:%x[-1,0]
B

4 B
2 U0:_B-1
0 U0:a

0.5000000000000000
-1.0000000000000000
2.0000000000000000
0.2500000000000000
0.0000000000000000
1.5000000000000000
-3.0000000000000000
0.1250000000000000
"""
KEYS = {b"B": 4, b"U0:_B-1": 2, b"U0:a": 0}
WEIGHTS = [0.5, -1.0, 2.0, 0.25, 0.0, 1.5, -3.0, 0.125]


def double_array(keys):
    """One base per node, 300 units apart: no unit is shared."""
    units, base_of = {}, {b"": 1}
    prefixes = sorted({key[:n] for key in keys for n in range(1, len(key) + 1)})
    for number, prefix in enumerate(prefixes, 1):
        base_of[prefix] = 1 + 300 * number
    for prefix in prefixes:
        parent = base_of[prefix[:-1]]
        units[parent + prefix[-1] + 1] = (base_of[prefix], parent)
    for key, start in keys.items():
        units[base_of[key]] = (-start - 1, base_of[key])
    units[0] = (1, 0)
    return b"".join(struct.pack("<ii", *units.get(unit, (0, 0))) for unit in range(max(units) + 1))


def binary():
    labels, templates = b"A\0B\0", b"U0:%x[-1,0]\0B\0\0\0"
    array = double_array(KEYS)
    head = struct.pack("<IidIIII", 100, 0, 1.0, 8, 1, len(array), len(labels))
    return head + labels + struct.pack("<I", len(templates)) + templates + array + struct.pack("<8f", *WEIGHTS)
