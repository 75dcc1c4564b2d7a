//@ input A
//@ input B
//@ input C
//@ param ivec4 batch[2]
//@ param ivec4 a_batch[2]
//@ param ivec4 b_batch[2]
//@ param ivec2 a_step
//@ param ivec2 b_step
//@ param ivec2 c_step
//@ param int rank
//@ param int rows
//@ param int columns
//@ param int depth
//@ param int across
//@ param int has_bias
//@ param float alpha
//@ param float beta
// A tile of ROWS rows by eight columns; four of the depth at once. The tiles of a plane lie in a row of `across` tiles
// after the other, or (FLAT 0) each row is a row of work groups, which then share the addresses of A.
// With PARTS above 1, ROWS is 1, and so many invocations of a work group share a tile: each takes a part of the depth.
// A_BY and B_BY say what a texel of a factor holds: four of one ROW, of one COLUMN, or (ELEMENT) nothing of use.
#define GRID
#define ROW 0
#define COLUMN 1
#define ELEMENT 2
//@ include product
//@ include repeat
vec4 four_of_b(int b, ivec4 column) { return vec4(B(b + column.x), B(b + column.y), B(b + column.z), B(b + column.w)); }
#if PARTS > 1
shared vec4 sums[128];
#endif
void tile(ivec3 at) {
    ivec2 start = planes(at.z);
    int k = 0, end = depth;
#if PARTS > 1
    int me = at.x & 63, together = 64 / PARTS, part = me / together, share = (depth / PARTS + 3) / 4 * 4;
    int first = at.y, column = ((at.x >> 6) * together + me - part * together) * 8;
    k = min(part * share, depth);
    end = part == PARTS - 1 ? depth : min(k + share, depth);
#else
#if FLAT == 1
    int first = at.x / across * ROWS, column = (at.x - at.x / across * across) * 8;
#else
    int first = at.y * ROWS, column = at.x * 8;
#endif
    if (first >= rows || column >= columns) return;
#endif
    int a[ROWS], b = start.y + k * b_step.x;
    ivec4 low = min(column + ivec4(0, 1, 2, 3), ivec4(columns - 1)) * b_step.y;
    ivec4 high = min(column + ivec4(4, 5, 6, 7), ivec4(columns - 1)) * b_step.y;
    vec4 sum[2][ROWS], v[ROWS], f0, f1, f2, f3;
    for (int r = 0; r < ROWS; ++r) {
        a[r] = start.x + min(first + r, rows - 1) * a_step.x + k * a_step.y;
        sum[0][r] = sum[1][r] = vec4(0.0);
    }
#if A_BY == ROW
#define LOAD_A(r, unused, none) v[r] = A_texel(a[r] >> 2); a[r] += 4;
#else
#define LOAD_A(r, unused, none) v[r] = vec4(A(a[r]), A(a[r] + a_step.y), A(a[r] + 2 * a_step.y), A(a[r] + 3 * a_step.y)); a[r] += 4 * a_step.y;
#endif
#define ADD(r, q, unused) sum[q][r] += v[r].x * f0; sum[q][r] += v[r].y * f1; sum[q][r] += v[r].z * f2; sum[q][r] += v[r].w * f3;
    for (; k + 3 < end; k += 4, b += 4 * b_step.x) {
        REPEAT(ROWS, LOAD_A, none, none)
#if B_BY == ROW
#define LOAD_B(columns) \
        f0 = B_texel(b + columns.x >> 2); f1 = B_texel(b + columns.x + b_step.x >> 2); \
        f2 = B_texel(b + columns.x + 2 * b_step.x >> 2); f3 = B_texel(b + columns.x + 3 * b_step.x >> 2);
#elif B_BY == COLUMN
#define LOAD_B(columns) { \
        mat4 turned = transpose(mat4(B_texel(b + columns.x >> 2), B_texel(b + columns.y >> 2), \
            B_texel(b + columns.z >> 2), B_texel(b + columns.w >> 2))); \
        f0 = turned[0]; f1 = turned[1]; f2 = turned[2]; f3 = turned[3]; }
#else
#define LOAD_B(columns) \
        f0 = four_of_b(b, columns); f1 = four_of_b(b + b_step.x, columns); \
        f2 = four_of_b(b + 2 * b_step.x, columns); f3 = four_of_b(b + 3 * b_step.x, columns);
#endif
        LOAD_B(low)
        REPEAT(ROWS, ADD, 0, none)
        LOAD_B(high)
        REPEAT(ROWS, ADD, 1, none)
    }
    for (; k < end; ++k, b += b_step.x) {
        f0 = four_of_b(b, low);
        f1 = four_of_b(b, high);
#define ADD_ONE(r, unused, none) v[r].x = A(a[r]); a[r] += a_step.y; sum[0][r] += v[r].x * f0; sum[1][r] += v[r].x * f1;
        REPEAT(ROWS, ADD_ONE, none, none)
    }
#if PARTS > 1
    for (int q = 0; q < 2; ++q) sums[me + 64 * q] = sum[q][0];
    barrier();
    if (part > 0 || column >= columns) return;
    for (int p = 1; p < PARTS; ++p)
        for (int q = 0; q < 2; ++q) sum[q][0] += sums[me + p * together + 64 * q];
#endif
    for (int r = 0; r < ROWS && first + r < rows; ++r)
        for (int q = 0; q < 2; ++q) {
            int begin = column + 4 * q, o = (at.z * rows + first + r) * columns + begin;
            vec4 value = sum[q][r];
            for (int c = 0; c < 4; ++c) value[c] = finish(value[c], first + r, min(begin + c, columns - 1));
#ifdef SCATTERED
            for (int c = 0; c < 4; ++c) if (begin + c < columns) store(o + c, value[c]);
#else
            if (begin < columns) store(o >> 2, value);
#endif
        }
}
