"""The base of functional tensors. Each function whose first parameter is `input` becomes one of its methods."""


class Methods:
    """The functions of `pf.functional` as methods: `x.softmax(1)` is `pf.functional.softmax(x, 1)`."""
