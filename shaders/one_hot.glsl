//@ input I
//@ input V
//@ param int depth
//@ param int inner
// V[1] at each index, else V[0]. A negative index counts from the end.
O_TYPE element(int o) {
    int at = int(I(o / inner / depth * inner + o % inner));
    return V((at < 0 ? at + depth : at) == o / inner % depth ? 1 : 0);
}
