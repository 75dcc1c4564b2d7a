//@ input X
//@ input I
//@ input F
//@ param ivec4 shape[2]
//@ param ivec4 whole[2]
//@ param int rank
//@ param int plane
//@ param int count
//@ param int first
//@ param int last
// Each output element searches the `count` input elements of its plane for its own index in a tensor of dims
// `whole`. A pass searches some of them; F is the result of the pass before. Elements beyond `whole` are zero.
float element(int o) {
    int rest = o, index = 0, step_ = 1;
    for (int d = rank - 1; d >= 0; --d) {
        int dim = shape[d >> 2][d & 3], size = whole[d >> 2][d & 3], c = rest % dim;
        if (c >= size) return 0.0;
        rest /= dim;
        index += c * step_;
        step_ *= size;
    }
    float value = first > 0 ? F(o) : 0.0;
    int begin = index / plane * count + first, end = begin + last - first;
    for (int t = begin >> 2; t * 4 < end; ++t) { // four at once
        bvec4 here = equal(I_texel(t), ivec4(index));
        if (!any(here)) continue;
        for (int k = 0; k < 4; ++k)
            if (here[k] && t * 4 + k >= begin && t * 4 + k < end) value = X(t * 4 + k);
    }
    return value;
}
