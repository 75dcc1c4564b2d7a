//@ input X
// The bits of each element, read as the output's dtype.
O_TYPE element(int o) { return READ(X(o)); }
