//@ input X
//@ input U
//@ input B
//@ param int outer
//@ param int size
//@ param int inner
//@ param int count
//@ param int circular
//@ param int has_begin
//@ input R elements if TOUCHED
//@ input L elements if TOUCHED
//@ param ivec4 touched
// O[batch, outer, s, inner] = U[batch, outer, s - B[batch], inner] where U has such a row, else X.
O_TYPE element(int o) {
    int i = o % inner, rest = o / inner;
    int s = rest % size, plane = rest / size;
    int row = s - (has_begin == 1 ? int(B(plane / outer)) : 0);
    if (circular == 1) row = floor_mod(row, size);
    return row >= 0 && row < count ? U((plane * count + row) * inner + i) : X(o);
}
