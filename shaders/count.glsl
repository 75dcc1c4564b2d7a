//@ input X
// One more than before.
int element(int o) { return int(X(o)) + 1; }
