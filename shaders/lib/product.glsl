// Where the planes of both factors begin for one of the batch, and the last steps of an element.
ivec2 planes(int index) {
    ivec2 at = ivec2(0);
    for (int d = rank - 1; d >= 0; --d) {
        int dim = batch[d >> 2][d & 3];
        int c = index % dim;
        index /= dim;
        at += c * ivec2(a_batch[d >> 2][d & 3], b_batch[d >> 2][d & 3]);
    }
    return at;
}
O_TYPE finish(O_TYPE total, int row, int column) {
    O_TYPE value = O_TYPE(alpha) * total;
    if (has_bias == 1) value += O_TYPE(beta) * C(row * c_step.x + column * c_step.y);
    return epilogue(value);
}
