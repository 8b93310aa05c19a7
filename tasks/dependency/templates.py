"""The features of a parser as it comes: templates of arcs and of their labels (see `structsvm.features.arc_templates`).

After McDonald, Crammer and Pereira (2005): words and tags of both ends, tags around them and between, morphology.
Labels have those of one end for next to nothing, and a few of both.
"""

from __future__ import annotations

ARCS = """
h.form h.xpos dist
h.form dist
h.xpos dist
m.form m.xpos dist
m.form dist
m.xpos dist
h.form h.xpos m.form m.xpos
h.xpos m.form m.xpos dist
h.xpos m.form m.xpos
h.form h.xpos m.xpos dist
h.form h.xpos m.xpos
h.form m.form m.xpos
h.form h.xpos m.form
h.form m.form dist
h.lemma m.lemma dir
h.xpos m.xpos dist
h.xpos m.xpos
h.upos m.upos dist
h.xpos h+1.xpos m-1.xpos m.xpos dist
h-1.xpos h.xpos m-1.xpos m.xpos dist
h.xpos h+1.xpos m.xpos m+1.xpos dist
h-1.xpos h.xpos m.xpos m+1.xpos dist
h.xpos h+1.xpos m.xpos dist
h-1.xpos h.xpos m.xpos dist
h.xpos m-1.xpos m.xpos dist
h.xpos m.xpos m+1.xpos dist
h-1.xpos h.xpos h+1.xpos m.xpos dir
h.xpos m-1.xpos m.xpos m+1.xpos dir
h.upos m-2.upos m-1.upos m.upos dist
h.upos m.upos m+1.upos m+2.upos dist
h.upos h+1.upos h+2.upos m.upos dist
h-2.upos h-1.upos h.upos m.upos dist
h.upos h.feats m.upos m.feats dir
h.upos m.upos m.feats dist
h.upos h.feats m.upos dist
h.upos m.suffix dir
h.suffix m.upos dir
h.upos m.upos m-1.form dir
h.upos m.upos m+1.form dir
h.lemma m.upos m-1.upos dir
h.upos b.upos m.upos dist
h.xpos b.xpos m.xpos dir
h.upos b.lemma m.upos dir
"""

LABELS = """
m.xpos dir
m.form m.xpos dir
m.lemma m.upos
m.suffix m.upos dir
m.upos m.feats dir
m-1.xpos m.xpos dir
m.xpos m+1.xpos dir
m-1.xpos m.xpos m+1.xpos dir
m-1.form m.upos dir
m.upos m+1.form dir
m-2.upos m-1.upos m.upos dir
m.upos m+1.upos m+2.upos dir
h.xpos dir
h.form h.xpos dir
h.lemma dir
h.upos h.feats dir
h.xpos h+1.xpos dir
h-1.xpos h.xpos dir
h.xpos m.xpos dist
h.lemma m.xpos dir
h.xpos m.lemma dir
h.lemma m.lemma
h.upos m.upos m-1.xpos dir
h.upos m.upos m+1.xpos dir
h.upos h.feats m.upos m.feats
h.feats m.feats dir
h.lemma m.upos m.suffix
h.upos h+1.lemma m.upos dir
h.upos m.upos m-1.lemma dir
h.upos m.upos m+1.lemma dir
h.lemma m.upos m-1.lemma
"""

# Pairs of arcs: neighbours below one head, words with their head's head.
PAIRS = """
h.xpos s.xpos m.xpos dir
s.xpos m.xpos dir
h.upos s.label m.label dir
h.lemma s.xpos m.xpos dir
h.lemma s.label m.label dir
s.label m.label dir
s.lemma m.lemma h.upos dir
s.lemma m.xpos h.upos dir
s.xpos m.lemma h.upos dir
s.label m.xpos h.upos dir
s.xpos m.label h.upos dir
h.label h.upos s.label m.label dir
g.xpos h.xpos m.xpos dir
g.xpos m.xpos dir
h.label m.label dir
g.upos h.label m.label m.upos dir
g.lemma h.upos m.upos dir
g.upos h.upos m.lemma dir
g.upos h.lemma m.upos dir
g.lemma m.lemma dir
g.lemma h.lemma m.lemma dir
h.label m.label h.lemma dir
h.upos t.label s.label m.label dir
h.upos t.upos s.upos m.upos dir
g.upos h.upos s.upos m.upos dir
g.upos h.label s.label m.label dir
g.upos h.upos m.label dir
h.feats s.label m.label dir
h.upos m.upos m.feats m.label s.label dir
h.label h.lemma m.lemma m.label
h.lemma m.lemma m.label
h.upos m-1.upos m.upos m+1.upos s.label m.label dir
"""

# Templates for each of the user's own columns; then those of its labels.
OWN_ARCS = """
h.own m.own dist
h.own m.upos dist
h.upos m.own dist
"""
OWN_LABELS = """
m.own dir
h.own dir
"""
# Templates of labels for each of the user's own columns of vectors.
OWN_VECTORS = """
m.own dir
h.own dir
"""
