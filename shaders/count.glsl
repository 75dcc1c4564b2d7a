//@ input X
// The number before, plus one.
int element(int o) { return int(X(o)) + 1; }
