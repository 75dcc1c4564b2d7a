//@ input A elements texels
//@ input B elements texels
//@ input C
//@ param ivec4 batch[2]
//@ param ivec4 a_batch[2]
//@ param ivec4 b_batch[2]
//@ param ivec2 base
//@ param ivec2 a_step
//@ param ivec2 b_step
//@ param ivec2 c_step
//@ param int rank
//@ param int rows
//@ param int columns
//@ param int depth
//@ param int across
//@ param int whole
//@ param float alpha
//@ param float beta
//@ unit grid
// A tile of ROWS rows by eight columns. The tiles of a plane lie one after the other, `across` in a row; or (FLAT 0)
// each row of tiles is a row of work groups, which then share the addresses of A.
// With PARTS above 1, ROWS is 1, and so many invocations of a work group share a tile: each takes a part of the depth.
//@ include product
//@ include four
//@ include repeat
//@ include tile
#if PARTS > 1
shared vec4 sums[128];
#endif
void tile(ivec3 at) {
    vec4 sum[2 * ROWS];
#if PARTS > 1
    int me = at.x & 63, together = 64 / PARTS, part = me / together, share = (depth / PARTS + 3) / 4 * 4;
    int first = at.y, column = ((at.x >> 6) * together + me - part * together) * 8, k = min(part * share, depth);
    multiply(planes(at.z), first, column, k, part == PARTS - 1 ? depth : min(k + share, depth), sum);
    for (int q = 0; q < 2; ++q) sums[me + 64 * q] = sum[q];
    barrier();
    if (part > 0 || column >= columns) return;
    for (int p = 1; p < PARTS; ++p)
        for (int q = 0; q < 2; ++q) sum[q] += sums[me + p * together + 64 * q];
#else
#if FLAT == 1
    int first = at.x / across * ROWS, column = (at.x - at.x / across * across) * 8;
#else
    int first = at.y * ROWS, column = at.x * 8;
#endif
    if (first >= rows || column >= columns) return;
    multiply(planes(at.z), first, column, 0, depth, sum);
#endif
    finish(sum, first, column);
    for (int r = 0; r < ROWS && first + r < rows; ++r)
        for (int q = 0; q < 2; ++q) {
            int begin = column + 4 * q, o = (at.z * rows + first + r) * columns + begin;
#ifdef SCATTERED
            for (int c = 0; c < 4; ++c) if (begin + c < columns) store(o + c, sum[2 * r + q][c]);
#else
            if (begin < columns) store(o >> 2, sum[2 * r + q]);
#endif
        }
}
