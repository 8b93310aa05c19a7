"""The local page that learns while one labels: inputs, answers on disk, a learner, a server and its page.

``structsvm annotate FILE`` starts it. The server needs the extra `annotate`.
"""
