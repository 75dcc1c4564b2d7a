"""The runner that tests perframe's layers, for layers from outside too.

```python
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_blur(case, backend):
    check(case, backend)
```
"""

from perframe.tensor import BackendType
from perframe.testing.cases import Case, Draw, ints
from perframe.testing.checks import check
from perframe.testing.formulas import formula_cases

BACKENDS = tuple(backend.value for backend in BackendType)

__all__ = ["BACKENDS", "Case", "Draw", "check", "formula_cases", "ints"]
