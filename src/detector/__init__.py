"""A nano object detector trained by Lightning: the real workload that the goldens and the benchmarks run.

Shapes in all modules: B images of a batch, H and W their height and width, S both where they are equal, C classes, L locations of all
levels, M boxes an image, padded. Boxes are float32 corners (x1, y1, x2, y2) in pixels; a label of -1 marks padding.
"""
