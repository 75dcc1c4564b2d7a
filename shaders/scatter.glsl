//@ input X
//@ input I
//@ input U
//@ input S elements if SORTED
//@ param ivec4 shape[2]
//@ param ivec4 extent[2]
//@ param ivec4 index_step[2]
//@ param ivec4 update_step[2]
//@ param int rank
//@ param int axis
//@ param int first
//@ param int count
//@ param int total
//@ input R elements if TOUCHED
//@ input L elements if TOUCHED
//@ param ivec4 touched
//@ long
// Each element combines with the updates whose index names it, in order. A pass examines `count` updates along the
// axis. SORTED: S has the order of the indices, which count from the front. A pass examines `count` of the updates that
// name the element, and needs to find the first of them only.
O_TYPE element(int o) {
    O_TYPE value = X(o);
    int i = 0, u = 0, coordinate = 0, size = 1;
    for (int d = rank - 1; d >= 0; --d) {
        int dim = shape[d >> 2][d & 3], c = o % dim;
        o /= dim;
        if (d == axis) {
            coordinate = c;
            size = dim;
            continue;
        }
        if (c >= extent[d >> 2][d & 3]) return value;
        i += c * index_step[d >> 2][d & 3];
        u += c * update_step[d >> 2][d & 3];
    }
    int i_step = index_step[axis >> 2][axis & 3], u_step = update_step[axis >> 2][axis & 3];
#ifdef SORTED
    int low = 0, high = total;
    while (low < high) {
        int middle = (low + high) / 2;
        if (int(I(i + int(S(i + middle * i_step)) * i_step)) < coordinate) low = middle + 1;
        else high = middle;
    }
    for (int k = low + first; k < min(low + first + count, total); ++k) {
        int j = int(S(i + k * i_step));
        if (int(I(i + j * i_step)) != coordinate) return value;
        O_TYPE update = U(u + j * u_step);
        value = COMBINE(value, update);
    }
#else
    for (int j = first; j < first + count; ++j) {
        int at = int(I(i + j * i_step));
        if (at == coordinate || at == coordinate - size) {
            O_TYPE update = U(u + j * u_step);
            value = COMBINE(value, update);
        }
    }
#endif
    return value;
}
