//@ input X elements, texels if WHOLE
//@ input W texels
//@ input S texels
//@ input Z texels if ZEROS
//@ input C
//@ param int rows
//@ param int columns
//@ param int depth
//@ param int block
//@ param int words
//@ param int blocks
//@ param int zero_words
//@ param int has_bias
//@ param int across
//@ unit grid
// A tile of ROWS rows by eight columns of a product with packed weights. With FLAT the tiles lie one after the other,
// `across` in a row; else each row of tiles is a row of work groups. With PARTS above 1, ROWS is 1, and
// PARTS invocations of a work group share a tile: each takes a part of the depth.
//@ include packed
//@ include four
//@ include repeat
//@ include packed_tile
#if PARTS > 1
shared vec4 sums[128];
#endif
void tile(ivec3 at) {
    vec4 sum[2 * ROWS];
#if PARTS > 1
    int me = at.x & 63, together = 64 / PARTS, part = me / together, share = (words + PARTS - 1) / PARTS;
    int first = at.y, column = ((at.x >> 6) * together + me - part * together) * 8, word = min(part * share, words);
    multiply(first, min(column, columns - 1) & ~7, word, min(word + share, words), sum);
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
    multiply(first, column, 0, words, sum);
#endif
    finish(sum, column);
    for (int r = 0; r < ROWS && first + r < rows; ++r)
        for (int q = 0; q < 2; ++q) {
            int begin = column + 4 * q, o = (first + r) * columns + begin;
#ifdef SCATTERED
            for (int c = 0; c < 4; ++c) if (begin + c < columns) store(o + c, sum[2 * r + q][c]);
#else
            if (begin < columns) store(o >> 2, sum[2 * r + q]);
#endif
        }
}
