//@ input X
//@ input I
//@ input U
//@ param ivec4 shape[2]
//@ param ivec4 extent[2]
//@ param ivec4 index_step[2]
//@ param ivec4 update_step[2]
//@ param int rank
//@ param int axis
//@ param int first
//@ param int count
// Each element combines with the updates whose index names it, in order. A pass examines `count` updates along the
// axis.
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
    for (int j = first; j < first + count; ++j) {
        int at = int(I(i + j * i_step));
        if (at == coordinate || at == coordinate - size) {
            O_TYPE update = U(u + j * u_step);
            value = COMBINE(value, update);
        }
    }
    return value;
}
