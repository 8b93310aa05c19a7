"""Templates of arcs: what is read, in what order, and what is refused."""

import numpy as np
import pytest

from structsvm.features.arc_templates import ArcTemplates

COLUMNS = ("form", "tag")


def test_templates_are_sorted_by_kind():
    templates = ArcTemplates(
        COLUMNS,
        ["h.form b.tag", "h.form m-2.tag dist", "dir"],
        ["h.form m.form", "m.tag dir", "h.tag", "m.form dist", "m+1.tag"],
    )
    assert templates.sizes == (3, 2, 1, 2)
    assert templates.width == 8
    np.testing.assert_array_equal(templates.arrays["between"], [-1, -1, 1, -1, -1, -1, -1, -1])
    np.testing.assert_array_equal(templates.arrays["distance"], [2, 1, 0, 1, 0, 0, 0, 2])
    np.testing.assert_array_equal(templates.arrays["below_ptr"], [0, 1, 1, 1, 2, 3, 3, 4, 5])
    np.testing.assert_array_equal(templates.arrays["below_parts"], [-2, 1, 0, 1, 1, 1, 0, 0, 0, 0])
    assert ArcTemplates(COLUMNS, ["h.tag", "h.tag"], ["m.tag"]).sizes == (1, 1, 0, 0)


def test_templates_of_vectors():
    templates = ArcTemplates(COLUMNS, ["dir"], ["m.far dir", "m.tag", "h-1.near"], {"near": 2, "far": 3})
    assert (templates.sizes, templates.n_codes, templates.n_number_rows) == ((1, 1, 0, 0), 7, 8)
    assert templates.arrays["vectors"].tolist() == [[0, 0, 4, 3, 1, 0], [1, -1, 2, 2, 0, 6]]
    assert "vectors" not in ArcTemplates(COLUMNS, [], ["m.tag"], {"near": 2}).arrays
    for text in ("h.near m.near", "m.near m.tag", "m.near dist", "b.near", "m.near m.near"):
        with pytest.raises(ValueError, match="a vector stands alone or beside 'dir', and 'near'"):
            ArcTemplates(COLUMNS, [], [text], {"near": 2})
    with pytest.raises(ValueError, match="'near' has vectors, which labels alone have templates of"):
        ArcTemplates(COLUMNS, ["h.near"], [], {"near": 2})


@pytest.mark.parametrize(
    ("arcs", "labels", "message"),
    [
        (["h.word"], [], r"template 'h.word': no column 'word'; there are form, tag"),
        (["x.form"], [], r"'x.form' is no part"),
        (["b+1.form"], [], r"no part"),
        (["b.form b.tag"], [], r"no part"),
        (["h+0.form"], [], r"no part"),
        ([""], [], r"it sees nothing"),
        ([], ["b.form"], r"labels have no templates of what is between"),
        ([f"b.form h+{k}.tag" for k in range(1, 10)], [], r"9 templates of what is between"),
        ([], [f"h+{k}.tag m{s}.tag" for k in range(1, 10) for s in ("", "+1")], r"18 of labels that see both"),
    ],
)
def test_what_is_refused(arcs, labels, message):
    with pytest.raises(ValueError, match=message):
        ArcTemplates(COLUMNS, arcs, labels)
