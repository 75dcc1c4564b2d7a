//@ input X
//@ input I
//@ input S
//@ param ivec4 shape[2]
//@ param ivec4 whole[2]
//@ param int rank
//@ param int plane
//@ param int count
// Each output element finds its own index, in a tensor of dims `whole`, among the `count` indices of its plane. S has
// their order. Elements that no index names, and those beyond `whole`, are zero.
O_TYPE element(int o) {
    int index = 0, step_ = 1;
    for (int d = rank - 1; d >= 0; --d) {
        int dim = shape[d >> 2][d & 3], size = whole[d >> 2][d & 3], c = o % dim;
        if (c >= size) return O_TYPE(0);
        o /= dim;
        index += c * step_;
        step_ *= size;
    }
    int begin = index / plane * count, low = 0, high = count;
    while (low < high) {
        int middle = (low + high) / 2;
        if (int(I(begin + int(S(begin + middle)))) < index) low = middle + 1;
        else high = middle;
    }
    if (low == count) return O_TYPE(0);
    int found = begin + int(S(begin + low));
    return int(I(found)) == index ? O_TYPE(X(found)) : O_TYPE(0);
}
