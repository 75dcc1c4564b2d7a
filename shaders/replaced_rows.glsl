//@ input B
//@ param int outer
//@ param int size
//@ param int count
//@ param int circular
//@ param int has_begin
// The number of the row that update `o` replaces, counted over all planes; -1 if there is none.
O_TYPE element(int o) {
    int plane = o / count, row = o % count + (has_begin == 1 ? int(B(plane / outer)) : 0);
    if (circular == 1) row = floor_mod(row, size);
    return O_TYPE(row < 0 || row >= size ? -1 : plane * size + row);
}
