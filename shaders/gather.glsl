//@ input X
//@ input I
//@ param int size
//@ param int inner
//@ param int count
// O[outer, index, inner] = X[outer, I[index], inner]; outside the axis it reads 0.
O_TYPE element(int o) {
    int i = o % inner, rest = o / inner;
    int at = int(I(rest % count));
    at += at < 0 ? size : 0;
    return at < 0 || at >= size ? O_TYPE(0) : X((rest / count * size + at) * inner + i);
}
