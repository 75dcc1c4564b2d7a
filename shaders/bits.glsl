//@ input X
// Each element's bits as the output's dtype.
O_TYPE element(int o) { return READ(X(o)); }
