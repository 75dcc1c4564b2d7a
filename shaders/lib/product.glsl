// Where the planes of both factors begin for one of the batch.
ivec2 planes(int index) {
    ivec2 at = base;
    for (int d = rank - 1; d >= 0; --d) {
        int dim = batch[d >> 2][d & 3];
        int c = index % dim;
        index /= dim;
        at += c * ivec2(a_batch[d >> 2][d & 3], b_batch[d >> 2][d & 3]);
    }
    return at;
}
